package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/bundle"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/file"
)

// Notes tells a person, line by line.
type Notes struct{ Out io.Writer }

// Progress is a line.
func (n Notes) Progress(_ context.Context, p profileoutput.Progress) error {
	fmt.Fprintln(n.Out, p)
	return nil
}

// Finish says how it ended.
func (n Notes) Finish(_ context.Context, r profileoutput.Result, _ *bundle.Bundle) error {
	fmt.Fprintf(n.Out, "%s: %s: %s\n", r.State, r.Reason, r.Message)
	return nil
}

// Folder writes a bundle into a folder.
type Folder struct{ Path string }

// Progress leaves no file.
func (f Folder) Progress(context.Context, profileoutput.Progress) error { return nil }

// Finish writes the files.
func (f Folder) Finish(_ context.Context, r profileoutput.Result, b *bundle.Bundle) error {
	files := map[string][]byte{profileoutput.KeyResult: []byte(r.Text())}
	if b != nil {
		var err error
		if files, err = b.Files(); err != nil {
			return err
		}
	}
	return file.Write(f.Path, files)
}

// ConfigMap writes into the ConfigMap of a request.
type ConfigMap struct {
	API typedcorev1.ConfigMapInterface
	// Name is the result's; Labels go to the ConfigMap with the profile.
	Name   string
	Labels map[string]string
	// Receipt is added to what was handed over in the end.
	Receipt profileoutput.Receipt
}

// fieldManager owns what the profiler writes.
const fieldManager = "dynamo-profiler"

// Progress replaces the one before it.
func (c ConfigMap) Progress(ctx context.Context, p profileoutput.Progress) error {
	return c.patch(ctx, map[string]string{profileoutput.KeyProgress: p.Text()})
}

func (c ConfigMap) patch(ctx context.Context, data map[string]string) error {
	body, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	if _, err := c.API.Patch(ctx, c.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", c.Name, err)
	}
	return nil
}

// Finish writes the profile first, so that a result never names what is not
// there.
func (c ConfigMap) Finish(ctx context.Context, r profileoutput.Result, b *bundle.Bundle) error {
	data := map[string]string{profileoutput.KeyResult: r.Text()}
	handed := maps.Clone(data)
	if b != nil {
		data[profileoutput.KeyReportHTML], data[profileoutput.KeyReportText] = b.HTML, b.Text
		profile, err := b.ConfigMap(r.ProfileData)
		if err != nil {
			return err
		}
		if err := c.profile(ctx, profile); err != nil {
			return err
		}
		c.receipt(profile.Name, profile.Data)
	}
	if err := c.patch(ctx, data); err != nil {
		return err
	}
	c.receipt(c.Name, handed) // reports are for people, and not receipted
	return nil
}

func (c ConfigMap) receipt(name string, data map[string]string) {
	if c.Receipt != nil {
		c.Receipt.Add(name, data)
	}
}

// profile makes the ConfigMap with the profile, or replaces what it holds. It
// has no owner: the graph that mounts it outlives the request.
func (c ConfigMap) profile(ctx context.Context, profile *corev1.ConfigMap) error {
	profile.Labels = c.Labels
	body, err := json.Marshal(profile)
	if err != nil {
		return err
	}
	force := true
	if _, err := c.API.Patch(ctx, profile.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: fieldManager, Force: &force}); err != nil {
		return fmt.Errorf("apply ConfigMap %s: %w", profile.Name, err)
	}
	return nil
}

// Both tells two sinks; the first one's failure does not silence the second.
type Both struct{ First, Second Sink }

// Progress tells both.
func (b Both) Progress(ctx context.Context, p profileoutput.Progress) error {
	return errors.Join(b.First.Progress(ctx, p), b.Second.Progress(ctx, p))
}

// Finish tells both.
func (b Both) Finish(ctx context.Context, r profileoutput.Result, all *bundle.Bundle) error {
	return errors.Join(b.First.Finish(ctx, r, all), b.Second.Finish(ctx, r, all))
}
