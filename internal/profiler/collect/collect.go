// Package collect brings what a profiler of others leaves in files into the
// ConfigMap of its request. It runs beside that profiler, waits for its end and
// never longer: a profiler that fails, or that leaves nothing, makes it fail.
package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
)

// Options say whose files to collect, and where to.
type Options struct {
	// From is the folder that the profiler writes to.
	From string
	// Pod and Container are the profiler's.
	Namespace, Pod, Container string
	// Result is the ConfigMap.
	Result string
	// Receipt is the file for the termination message, which proves what was
	// written; none if empty.
	Receipt string
	// Every is how often the pod is read, GiveUpAfter how long it may be that
	// it cannot be.
	Every, GiveUpAfter time.Duration
}

// Run waits for the end of a profiler and collects.
func Run(ctx context.Context, api typedcorev1.CoreV1Interface, o Options) error {
	code, err := o.wait(ctx, api)
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("there is nothing to collect: container %s ended with exit code %d", o.Container, code)
	}
	data, err := o.read()
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	if _, err := api.ConfigMaps(o.Namespace).Patch(ctx, o.Result, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", o.Result, err)
	}
	return o.receipt(data)
}

// receipt proves to the controller what was written. Without it nothing of it
// counts.
func (o Options) receipt(data map[string]string) error {
	if o.Receipt == "" {
		return nil
	}
	receipt := profileoutput.Receipt{}
	receipt.Add(o.Result, data)
	if err := os.WriteFile(o.Receipt, []byte(receipt.Text()), 0o644); err != nil {
		return fmt.Errorf("write the receipt: %w", err)
	}
	return nil
}

// wait returns the exit code of the profiler's container, and passes on until then
// how far it is.
func (o Options) wait(ctx context.Context, api typedcorev1.CoreV1Interface) (int32, error) {
	last := time.Now()
	var code int32
	var told string
	err := wait.PollUntilContextCancel(ctx, o.Every, true, func(ctx context.Context) (bool, error) {
		if phase := o.phase(); phase != "" && phase != told && o.tell(ctx, api, phase) == nil {
			told = phase
		}
		pod, err := api.Pods(o.Namespace).Get(ctx, o.Pod, metav1.GetOptions{})
		if err != nil {
			if time.Since(last) > o.GiveUpAfter {
				return false, fmt.Errorf("look at pod %s: %w", o.Pod, err)
			}
			return false, nil
		}
		last = time.Now()
		end := terminated(pod, o.Container)
		if end != nil {
			code = end.ExitCode
		}
		return end != nil, nil
	})
	return code, err
}

// phase is how far the profiler says that it is; empty if it says nothing that is
// known. One of before 1.0 never does.
func (o Options) phase() string {
	text, err := os.ReadFile(filepath.Join(o.From, profileoutput.FileStatus))
	if err != nil {
		return ""
	}
	var status struct {
		Phase string `json:"phase"`
	}
	if yaml.Unmarshal(text, &status) != nil || !profileoutput.IsPhase(status.Phase) {
		return "" // it is being written, or is not meant for us
	}
	return status.Phase
}

// tell passes a phase on. It is only shown: one that cannot be written is tried again
// with the next look.
func (o Options) tell(ctx context.Context, api typedcorev1.CoreV1Interface, phase string) error {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{profileoutput.KeyPhase: phase}})
	if err != nil {
		return err
	}
	_, err = api.ConfigMaps(o.Namespace).Patch(ctx, o.Result, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func terminated(pod *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == container {
			return c.State.Terminated
		}
	}
	return nil
}

// longest is what fits into a ConfigMap, with room for its metadata.
const longest = 1000 * 1000

// read takes the graphs out of the folder: the real one, or the one that a profiler
// of 1.x leaves, must be there; that of mock engines may be.
func (o Options) read() (map[string]string, error) {
	data, size := map[string]string{}, 0
	for _, name := range []string{profileoutput.KeyGraph, profileoutput.KeyMockerGraph, profileoutput.KeyFinalGraph} {
		text, err := os.ReadFile(filepath.Join(o.From, name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		data[name] = string(text)
		size += len(text)
	}
	if data[profileoutput.KeyGraph] == "" && data[profileoutput.KeyFinalGraph] == "" {
		return nil, fmt.Errorf("the profiler ended without an error but wrote neither %s nor %s", profileoutput.KeyGraph, profileoutput.KeyFinalGraph)
	}
	if size > longest {
		return nil, fmt.Errorf("the profiler wrote %d bytes, more than fit into a ConfigMap", size)
	}
	return data, nil
}
