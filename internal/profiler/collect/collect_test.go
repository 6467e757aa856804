package collect

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

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

// TestAProfilerOfOthersIsFollowed: what one of 1.x says of itself while it runs is
// passed on, and nothing else that stands there.
func TestAProfilerOfOthersIsFollowed(t *testing.T) {
	folder := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "profiler", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	set := fake.NewClientset(pod, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "place"}})
	var looks atomic.Int64
	set.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		looks.Add(1)
		return false, nil, nil
	})
	api := set.CoreV1()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(t.Context(), api, Options{
			From: folder, Namespace: "ns", Pod: "pod", Container: "profiler", Result: "place", Every: time.Millisecond, GiveUpAfter: time.Minute,
		})
	}()
	shows := func(when, want string) {
		t.Helper()
		seen := looks.Load()
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			place, err := api.ConfigMaps("ns").Get(ctx, "place", metav1.GetOptions{})
			return err == nil && place.Data[profileoutput.KeyPhase] == want && looks.Load() > seen+2, nil
		})
		if err != nil {
			t.Errorf("%s: no %q", when, want)
		}
	}
	shows("it says nothing", "")
	write(profileoutput.FileStatus, "status: running\nphase: SweepingPrefill\nmessage: 1 of 4\n")
	shows("it sweeps", profileoutput.PhaseSweepingPrefill)
	write(profileoutput.FileStatus, "status: runn")
	shows("the file is half written", profileoutput.PhaseSweepingPrefill)
	write(profileoutput.FileStatus, "phase: owned\n")
	shows("a word of nobody's", profileoutput.PhaseSweepingPrefill)
	write(profileoutput.FileStatus, "phase: GeneratingDGD\n")
	shows("it writes", profileoutput.PhaseGeneratingDGD)

	write(profileoutput.KeyFinalGraph, "graph")
	pod = pod.DeepCopy()
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	if _, err := api.Pods("ns").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	place, err := api.ConfigMaps("ns").Get(t.Context(), "place", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{profileoutput.KeyPhase: profileoutput.PhaseGeneratingDGD, profileoutput.KeyFinalGraph: "graph"}
	if diff := cmp.Diff(want, place.Data); diff != "" {
		t.Error(diff)
	}
}
