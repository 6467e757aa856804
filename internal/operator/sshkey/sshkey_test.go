package sshkey

import (
	"bytes"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
)

func TestThePublicKeyBelongsToThePrivateOne(t *testing.T) {
	wanted, err := New("lab", "mpi-run-ssh-secret")
	if err != nil {
		t.Fatal(err)
	}
	data := wanted.Object.(*corev1.Secret).Data
	signer, err := ssh.ParsePrivateKey(data["private.key"])
	if err != nil {
		t.Fatal(err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(data["private.key.pub"])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(signer.PublicKey().Marshal(), public.Marshal()) {
		t.Error("the two keys are not a pair")
	}
	if !wanted.CreateOnly {
		t.Error("a key that is in use would be replaced")
	}
}
