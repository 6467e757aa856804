package collect

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
)

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		exit   int32
		files  map[string]string
		want   map[string]string
		failed bool
	}{
		"files are collected": {
			files: map[string]string{"config_with_planner.yaml": "real", "mocker_config_with_planner.yaml": "mock", "profile_sla.log": "log"},
			want:  map[string]string{"config_with_planner.yaml": "real", "mocker_config_with_planner.yaml": "mock"},
		},
		"a graph of mock engines may be missing": {
			files: map[string]string{"config_with_planner.yaml": "real"}, want: map[string]string{"config_with_planner.yaml": "real"},
		},
		"nothing is taken from a profiler that failed": {exit: 1, files: map[string]string{"config_with_planner.yaml": "half"}, failed: true},
		"a profiler that leaves nothing has failed":    {failed: true},
		"what does not fit is refused":                 {files: map[string]string{"config_with_planner.yaml": string(make([]byte, longest+1))}, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, text := range test.files {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "output-copier", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				{Name: "profiler", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: test.exit}}},
			}
			place := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "place"}}
			api := fake.NewClientset(pod, place).CoreV1()
			err := Run(t.Context(), api, Options{
				From: folder, Namespace: "ns", Pod: "pod", Container: "profiler", Result: "place", Every: time.Millisecond, GiveUpAfter: time.Minute,
				Receipt: filepath.Join(folder, "receipt"),
			})
			if (err != nil) != test.failed {
				t.Fatalf("got %v", err)
			}
			place, err = api.ConfigMaps("ns").Get(t.Context(), "place", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, place.Data); diff != "" {
				t.Error(diff)
			}
			message, err := os.ReadFile(filepath.Join(folder, "receipt"))
			if test.failed {
				if err == nil {
					t.Errorf("a receipt for nothing: %s", message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			receipt, err := profileoutput.ParseReceipt(string(message))
			if err != nil {
				t.Fatal(err)
			}
			proven, err := receipt.Proven("place", place.Data)
			if diff := cmp.Diff(test.want, proven); diff != "" || err != nil {
				t.Errorf("the receipt proves something else: %v\n%s", err, diff)
			}
		})
	}
}

func TestAPodThatCannotBeLookedAtIsGivenUp(t *testing.T) {
	api := fake.NewClientset().CoreV1()
	if err := Run(t.Context(), api, Options{Namespace: "ns", Pod: "gone", Every: time.Millisecond}); err == nil {
		t.Error("it goes on")
	}
}
