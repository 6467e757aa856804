package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/exit"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/output"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

const undoHelp = `Write the spec of an earlier revision back: that of --to-revision, or of the last
rollout that completed before this one. The replicas that a scaling adapter decides
and the last restart stay as they are. It is a change like any other: the operator
rolls it out, with the same floor.

Where Argo CD, Flux or Helm wrote the spec, they would write theirs again. There the
manifest is printed instead, for you to commit, and the code is 3; --force writes all
the same.`

type undoing struct {
	revision      int64
	dryRun, force bool
}

func undoCommand() *cobra.Command {
	var u undoing
	command := verb("undo", "Go back to the spec of an earlier revision", undoHelp, func(ctx context.Context, t target, out, notes io.Writer) error {
		return t.undo(ctx, out, notes, u)
	})
	flags := command.Flags()
	flags.Int64Var(&u.revision, "to-revision", 0, "the revision; the last completed one before this one if not given")
	flags.BoolVar(&u.dryRun, "dry-run", false, "print the manifest, and write nothing")
	flags.BoolVar(&u.force, "force", false, "write although something else keeps the spec as it is")
	return command
}

func (t target) undo(ctx context.Context, out, notes io.Writer, u undoing) error {
	dgd, err := t.graph(ctx)
	if err != nil {
		return err
	}
	all, err := t.revisions(ctx, dgd)
	if err != nil {
		return err
	}
	r, err := chosen(dgd, all, u.revision)
	if err != nil {
		return err
	}
	restored, err := revision.Restore(dgd, r)
	if err != nil {
		return err
	}
	keeper := keeperOf(dgd.ManagedFields)
	if !u.dryRun && (keeper == "" || u.force) {
		if err := t.put(ctx, restored); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: revision %d is written back (generation %s)\n", t.name, r.Revision, named(revision.Generation(r)))
		return nil
	}
	shown, err := manifest(restored)
	if err != nil {
		return err
	}
	if err := output.YAML.Write(sanitise.Document(out), []map[string]any{shown}, true); err != nil {
		return err
	}
	if u.dryRun {
		fmt.Fprintf(notes, "%s: revision %d, not written\n", t.name, r.Revision)
		return nil
	}
	return exit.With{Code: codeWaits, Message: fmt.Sprintf("%s wrote the spec of %s and would again: commit revision %d as printed, or use --force", keeper, t.name, r.Revision)}
}

// chosen is the revision to go back to.
func chosen(dgd *v1alpha1.DynamoGraphDeployment, all []*appsv1.ControllerRevision, number int64) (*appsv1.ControllerRevision, error) {
	if number != 0 {
		if r := revision.Numbered(all, number); r != nil {
			return r, nil
		}
		return nil, unknown(dgd.Name, number, all)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("graph %s has no revisions", dgd.Name)
	}
	now := all[len(all)-1]
	if s := dgd.Status.Rollout; s != nil {
		if r := revision.Numbered(all, s.Revision); r != nil {
			now = r
		}
	}
	if r := revision.Before(all, revision.Generation(now)); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("graph %s has no completed revision beside %d", dgd.Name, now.Revision)
}

// keepers are what writes the specs of graphs again and again, by the names of their
// field managers.
var keepers = []struct{ name, manager string }{
	{"Argo CD", "argocd-controller"},
	{"Argo CD", "argocd-application-controller"},
	{"Flux", "kustomize-controller"},
	{"Flux", "helm-controller"},
	{"Flux", "flux"},
	{"Helm", "helm"},
}

// keeperOf is what has written the spec and will again; empty if nothing has.
func keeperOf(fields []metav1.ManagedFieldsEntry) string {
	for _, k := range keepers {
		if slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
			return strings.EqualFold(f.Manager, k.manager) && f.Subresource == "" && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:spec"`)
		}) {
			return k.name
		}
	}
	return ""
}

// put writes a graph in the version that it was written in, if it is still the one
// that was read.
func (t target) put(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) error {
	dgd = dgd.DeepCopy()
	dgd.ManagedFields = nil // the server keeps them
	dgd.Status = v1alpha1.DynamoGraphDeploymentStatus{}
	object, err := asWritten(dgd)
	if err != nil {
		return err
	}
	if err := t.Update(ctx, object, fieldManager); err != nil {
		return fmt.Errorf("write graph %s/%s: %w", t.namespace, t.name, err)
	}
	return nil
}

// asWritten is a graph in the version that its author wrote it in.
func asWritten(dgd *v1alpha1.DynamoGraphDeployment) (*unstructured.Unstructured, error) {
	dgd.APIVersion, dgd.Kind = v1alpha1.SchemeGroupVersion.String(), v1alpha1.KindDynamoGraphDeployment
	text, err := json.Marshal(dgd)
	if err != nil {
		return nil, fmt.Errorf("encode graph %s: %w", dgd.Name, err)
	}
	if conversion.WrittenAs(dgd) == conversion.Beta {
		beta, err := conversion.Convert(text, v1alpha1.GroupName+"/"+conversion.Beta)
		if err != nil {
			return nil, fmt.Errorf("convert graph %s: %w", dgd.Name, err)
		}
		text = beta.JSON
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		return nil, fmt.Errorf("decode graph %s: %w", dgd.Name, err)
	}
	return object, nil
}

// theirs are annotations that no author writes: records of the operator and of
// kubectl, and orders about rollouts that are over. Which version a graph was written
// as stays where a conversion notes it: its payload alone would say the other one.
var theirs = append([]string{
	corev1.LastAppliedConfigAnnotation,
	v1alpha1.AnnotationRolloutPromote, v1alpha1.AnnotationRolloutAbort, v1alpha1.AnnotationRolloutRetry,
}, graph.Records...)

// manifest is a graph as its author would write it: name, labels, annotations and spec.
func manifest(dgd *v1alpha1.DynamoGraphDeployment) (map[string]any, error) {
	bare := &v1alpha1.DynamoGraphDeployment{Spec: dgd.Spec}
	bare.Name, bare.Namespace, bare.Labels = dgd.Name, dgd.Namespace, dgd.Labels
	bare.Annotations = dgd.Annotations
	object, err := asWritten(bare.DeepCopy())
	if err != nil {
		return nil, err
	}
	annotations := object.GetAnnotations()
	for _, key := range theirs {
		delete(annotations, key)
	}
	object.SetAnnotations(annotations)
	unstructured.RemoveNestedField(object.Object, "status")
	return object.Object, nil
}
