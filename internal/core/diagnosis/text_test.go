package diagnosis

import (
	"testing"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

func TestCredentialsInALogAreNotTold(t *testing.T) {
	for rule, c := range map[string]struct{ line, want string }{
		"a token of Hugging Face":           {"401 for hf_abcdefghijKLMNOPqrst: denied", "401 for hf_***: denied"},
		"a key of NGC":                      {"bad key nvapi-abcdefghijkl-mnopqrst", "bad key nvapi-***"},
		"a header":                          {"sent Authorization: Bearer abc.def-ghi", "sent Authorization: Bearer ***"},
		"a password in a URL":               {"dial s3://me:hunter22@store:9000/x failed", "dial s3://me:***@store:9000/x failed"},
		"a variable":                        {"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7 is wrong", "AWS_SECRET_ACCESS_KEY=*** is wrong"},
		"a value in JSON":                   {`{"password": "hunter22", "user": "me"}`, `{"password": "***", "user": "me"}`},
		"a token of a ServiceAccount":       {"refused eyJhbGciOiJSUzI1.eyJpc3MiOiJrdWJl.c2ln", "refused ***"},
		"a long value":                      {"api_key: 0123456789abcdef0 unknown", "api_key: *** unknown"},
		"a token that is only spoken of":    {"invalid token: expected a number", "invalid token: expected a number"},
		"tokens of models are no secret":    {"max_tokens=128 exceeds tokens: 64", "max_tokens=128 exceeds tokens: 64"},
		"what engines say of their failure": {"ValueError: tokenizer is missing", "ValueError: tokenizer is missing"},
	} {
		t.Run(rule, func(t *testing.T) {
			if got := LastLine("before\n" + c.line + "\n"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestWhatATenantWritesIsSafeToShow plays a tenant who puts terminal escapes
// wherever the words come from that a cause is told in.
func TestWhatATenantWritesIsSafeToShow(t *testing.T) {
	const attack = "\x1b]52;c;cm0gLXJmIC8=\x07\x1b]8;;https://evil.example\x1b\\here\u009b2A\x1b[2J\r\u202e\x9b31m"
	pod := func(status corev1.ContainerStatus, spec corev1.Container) snapshot.Evidence {
		status.Name, spec.Name = "main", "main"
		return snapshot.Evidence{Pods: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"},
			Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{spec}},
			Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}},
		}}}
	}
	waiting := func(reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "error: " + attack}}}
	}
	ended := func(message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}}
	}
	logged := pod(ended(""), corev1.Container{})
	logged.LastLines = map[snapshot.ContainerKey]string{{Pod: "u", Container: "main"}: "fine\n" + attack + "\n"}
	probed := corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{attack}}}}
	for rule, e := range map[string]snapshot.Evidence{
		"a log":                   logged,
		"a termination message":   pod(ended(attack), corev1.Container{}),
		"an image name":           pod(waiting("InvalidImageName"), corev1.Container{Image: attack}),
		"a registry's answer":     pod(waiting("ErrImagePull"), corev1.Container{Image: "x"}),
		"an environment variable": pod(waiting("CreateContainerConfigError"), corev1.Container{}),
		"a command":               pod(waiting("RunContainerError"), corev1.Container{}),
		"a probe": pod(corev1.ContainerStatus{Started: new(false), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			corev1.Container{StartupProbe: &probed}),
		"a refusal": {Refused: []snapshot.Refusal{{By: "Deployment/x", Message: attack}}},
	} {
		t.Run(rule, func(t *testing.T) {
			c, found := First(e)
			if !found {
				t.Fatal("no cause")
			}
			for _, r := range c.Message {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
					t.Errorf("%U in %q", r, c.Message)
				}
			}
			if !utf8.ValidString(c.Message) {
				t.Errorf("%q", c.Message)
			}
		})
	}
}
