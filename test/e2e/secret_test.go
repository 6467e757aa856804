package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// TestWhatIsInSecretsIsNotTold gives a graph Secrets of every use, good and bad,
// some of which it fails for, and looks for their content wherever the operator
// speaks: its log, events, and the status of our kinds.
func TestWhatIsInSecretsIsNotTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const marker = "kept-to-themselves-4711"
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + marker))
	secret := func(name string, kind corev1.SecretType, key, value string) {
		w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Type: kind, StringData: map[string]string{key: value}})
	}
	secret("env", corev1.SecretTypeOpaque, "TOKEN", marker)
	secret("registry", corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{"auths":{"example.com":{"auth":"`+encoded+`"}}}`)
	// The API server takes only JSON, and nothing else that is wrong is its business.
	secret("broken", corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{"auths":["`+marker+`"]}`)

	dgd := w.spanningRest("g", 2)
	dgd.Spec.BackendFramework = v1alpha1.BackendFrameworkTRTLLM
	dgd.Spec.Services["Frontend"].EnvFromSecret = new("env")
	from := func(key string) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}, Key: key},
		}}}
	}
	lacking, chatty := w.restful("").Spec.Services["decode"], w.restful("").Spec.Services["decode"]
	lacking.Envs = from("absent")
	// An engine that prints what it was given, and ends.
	chatty.Envs = from("TOKEN")
	chatty.ExtraPodSpec.MainContainer = &corev1.Container{Image: "kubectl-dynamo:dev", Command: []string{"kubectl-dynamo"}, Args: []string{"HF_TOKEN=$(TOKEN)"}}
	dgd.Spec.Services["lacking"], dgd.Spec.Services["chatty"] = lacking, chatty
	w.create(dgd)
	w.eventually("the components to say what is wrong, and a key to be made", func(ctx context.Context) error {
		for name, words := range map[string]string{"g-lacking": "has no key absent", "g-chatty": "HF_TOKEN=***"} {
			dcd := &v1alpha1.DynamoComponentDeployment{}
			if err := w.cluster.Client.Get(ctx, w.key(name), dcd); err != nil {
				return err
			}
			if said := fmt.Sprintf("%+v", dcd.Status); !strings.Contains(said, words) {
				return fmt.Errorf("%s: %s", name, said)
			}
		}
		return w.cluster.Client.Get(ctx, w.key("mpi-run-ssh-secret"), &corev1.Secret{})
	})

	forbidden := []string{marker, encoded, base64.StdEncoding.EncodeToString([]byte(marker))}
	for _, key := range []types.NamespacedName{w.key("mpi-run-ssh-secret"), {Namespace: localenv.OperatorKey.Namespace, Name: "webhook-server-cert"}} {
		forbidden = append(forbidden, w.privateLines(key)...)
	}
	for where, text := range w.spoken() {
		if text == "" {
			t.Errorf("nothing is said in %s, so nothing was looked at", where)
		}
		for _, word := range forbidden {
			if at := strings.Index(text, word); at >= 0 {
				t.Errorf("%s tells what is in a Secret: %q", where, text[max(0, at-200):min(len(text), at+20)])
			}
		}
	}
}

// privateLines are the lines of the keys in a Secret that nobody else has.
func (w world) privateLines(key types.NamespacedName) []string {
	w.Helper()
	secret := &corev1.Secret{}
	if err := w.cluster.Client.Get(w.ctx, key, secret); err != nil {
		w.Fatal(err)
	}
	var lines []string
	for name, value := range secret.Data {
		if !strings.Contains(string(value), "PRIVATE KEY") {
			continue
		}
		for line := range strings.Lines(string(value)) {
			if line = strings.TrimSpace(line); len(line) > 20 && !strings.HasPrefix(line, "-----") {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			w.Errorf("%s of %s has no lines", name, key)
		}
	}
	return lines
}

// spoken is all that the operator says about this world.
func (w world) spoken() map[string]string {
	w.Helper()
	said := map[string]string{}
	logs, err := w.cluster.Kubectl(w.ctx, nil, "logs", "-n", localenv.OperatorKey.Namespace, "-l", "control-plane=controller-manager", "--tail=-1")
	if err != nil {
		w.Fatal(err)
	}
	said["the operator's log"] = logs
	for what, kinds := range map[string]string{"events": "events", "statuses": "dgd,dcd,dgdsa"} {
		text, err := w.cluster.Kubectl(w.ctx, nil, "get", kinds, "-n", w.namespace, "-o", "json")
		if err != nil {
			w.Fatal(err)
		}
		said[what] = text
	}
	audit, err := os.ReadFile(filepath.Join(filepath.Dir(w.cluster.Kubeconfig), "logs", "audit.log"))
	if err != nil {
		w.Fatal(err)
	}
	said["the audit log"] = string(audit)
	return said
}
