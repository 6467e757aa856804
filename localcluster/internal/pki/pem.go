package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "EC PRIVATE KEY"
)

func writeCertificate(file string, der []byte) error {
	return writePEM(file, certificateBlock, der, 0o644)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	return writePEM(file, keyBlock, der, 0o600)
}

func writePEM(file, block string, der []byte, mode os.FileMode) error {
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}), mode); err != nil {
		return fmt.Errorf("write certificate or key: %w", err)
	}
	return nil
}

func readCertificate(file string) (*x509.Certificate, error) {
	der, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	return cert, nil
}

func readKey(file string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	return key, nil
}

func readPEM(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("parse %s: %w", file, errors.New("no PEM block"))
	}
	return block.Bytes, nil
}
