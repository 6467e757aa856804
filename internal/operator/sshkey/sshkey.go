// Package sshkey makes the key by which nodes of an MPI group reach each other.
package sshkey

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// New makes a Secret with a fresh pair of keys. It is for one namespace: a key
// that opens pods of others would be worth stealing.
func New(namespace, name string) (graph.Desired, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return graph.Desired{}, fmt.Errorf("make an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, name)
	if err != nil {
		return graph.Desired{}, fmt.Errorf("encode an SSH key: %w", err)
	}
	authorized, err := ssh.NewPublicKey(public)
	if err != nil {
		return graph.Desired{}, fmt.Errorf("encode an SSH key: %w", err)
	}
	return graph.Desired{Ownership: graph.OwnershipNone, CreateOnly: true, Object: &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		},
		Data: map[string][]byte{
			"private.key":     pem.EncodeToMemory(block),
			"private.key.pub": ssh.MarshalAuthorizedKey(authorized),
		},
	}}, nil
}
