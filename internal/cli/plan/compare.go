package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// comparison is a graph as it runs and as it is to be.
type comparison struct {
	renderer render.Renderer
	// version is that of the new manifest: fields are told in its words.
	version string
	seen    sight
	desired *v1alpha1.DynamoGraphDeployment
	// words are what the new manifest is to have of what conversions note.
	words map[string]string
	// records are the operator's on the graph that runs, in the version of the manifest.
	records map[string]string
	// standing is nil unless something else runs than the graph asks for.
	standing *standing
}

// words are annotations in which conversions note what a version has no fields for,
// and which version a graph was written as.
var words = []string{v1alpha1.AnnotationGraphPayload, v1alpha1.AnnotationWrittenAs}

// keepWords gives a manifest the words that the graph that runs has in its version.
// Whoever applies the manifest takes none away that they have not applied before: the
// graph stays what it was written as.
func keepWords(d input.Document, live *v1alpha1.DynamoGraphDeployment) error {
	seen, err := shown(live, d.GetAPIVersion())
	if err != nil {
		return err
	}
	var applied metav1.PartialObjectMetadata
	if text := live.Annotations[corev1.LastAppliedConfigAnnotation]; json.Unmarshal([]byte(text), &applied) != nil {
		applied.Annotations = nil // nobody has applied it by kubectl
	}
	kept := d.GetAnnotations()
	for _, key := range words {
		value, there := seen.GetAnnotations()[key]
		_, said := kept[key]
		if _, before := applied.Annotations[key]; !there || said || before {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	d.SetAnnotations(kept)
	return nil
}

// inherit leaves the operator's records on a graph that is changed: whoever applies
// a manifest does not take them away.
func inherit(desired, live *v1alpha1.DynamoGraphDeployment) {
	for _, key := range graph.Records {
		value, there := live.Annotations[key]
		if _, said := desired.Annotations[key]; !there || said {
			continue
		}
		if desired.Annotations == nil {
			desired.Annotations = map[string]string{}
		}
		desired.Annotations[key] = value
	}
}

// settled is a graph that runs with the records that the operator has made by now; a
// manifest that was never applied has none.
func (c *comparison) settled() error {
	live := c.seen.graph
	g, err := graph.FromGraphDeployment(live, c.renderer.Platform.Defaults)
	if err != nil {
		return fmt.Errorf("the graph that runs: %w", err)
	}
	records := workload.Record(live.Annotations, c.renderer.Provider(live))
	maps.Copy(records, graph.RecordGraph(live, g, graph.Running{}))
	if live.Annotations == nil {
		live.Annotations = map[string]string{}
	}
	for key, value := range records {
		if _, there := live.Annotations[key]; !there {
			live.Annotations[key] = value
		}
	}
	inherit(c.desired, live)
	c.records = live.Annotations
	return nil
}

// plan puts together what the change does.
func (c *comparison) plan() (Plan, error) {
	p := Plan{Namespace: c.desired.Namespace, Name: c.desired.Name}
	if c.seen.graph == nil {
		after, g, err := services(c.renderer, c.desired, nil, "")
		if err != nil {
			return p, err
		}
		p.forecast(nil, after, c.seen, generation.Cells(g), nil)
		return p, nil
	}
	if err := c.settled(); err != nil {
		return p, err
	}
	note, err := c.stand()
	if err != nil {
		return p, err
	}
	before, running, err := c.rendered(c.seen.graph, nil, "")
	if err != nil {
		return p, fmt.Errorf("the graph that runs: %w", err)
	}
	scale := adapted(running)
	after, g, err := c.rendered(c.desired, scale, c.restart(c.desired))
	if err != nil {
		return p, err
	}
	if p.Fields, err = c.fields(before, scale); err != nil {
		return p, err
	}
	c.back(&p, g, after)
	p.moved(c.renderer.Provider(c.seen.graph), c.renderer.Provider(c.desired))
	restart := c.restart(c.desired)
	p.inTurn = restart != "" && !parallel(c.desired)
	p.forecast(before, after, c.seen, generation.Cells(g), c.exchanged(before, after, running, g, restart))
	p.explain(before, after)
	if note != "" {
		p.Notes = append(p.Notes, note)
	}
	return p, nil
}

// restart is the id of one that a graph asks for and the one that runs does not; empty if
// there is none, or it was carried out before.
func (c *comparison) restart(dgd *v1alpha1.DynamoGraphDeployment) string {
	asked, before, last := dgd.Spec.Restart, c.seen.graph.Spec.Restart, c.seen.graph.Status.Restart
	if asked == nil || before != nil && before.ID == asked.ID ||
		last != nil && last.ObservedID == asked.ID && (last.Phase == v1alpha1.RestartPhaseCompleted || last.Phase == v1alpha1.RestartPhaseSuperseded) {
		return ""
	}
	return asked.ID
}

// parallel reports whether services are restarted at once, rather than in turn.
func parallel(dgd *v1alpha1.DynamoGraphDeployment) bool {
	s := dgd.Spec.Restart.Strategy
	return s != nil && s.Type == v1alpha1.RestartParallel
}

// adapted are the replicas of services whose scaling adapter decides about them: the
// operator writes that number into the graph, and a manifest does not change it.
func adapted(g *graph.Graph) map[string]int32 {
	scale := map[string]int32{}
	for _, a := range g.Adapters {
		for _, c := range g.Components {
			if c.Name == a.Service {
				scale[c.Name] = c.Replicas
			}
		}
	}
	return scale
}

// fields lists what differs and what comes of each field by itself: the graph that
// runs is rendered with that one changed.
func (c *comparison) fields(before map[string]service, scale map[string]int32) ([]Field, error) {
	old, err := c.tree(c.seen.graph)
	if err != nil {
		return nil, err
	}
	desired, err := c.tree(c.desired)
	if err != nil {
		return nil, err
	}
	var all []Field
	unchanged, err := c.alone(old)
	if err != nil {
		return nil, fmt.Errorf("the graph that runs, as %s: %w", c.version, err)
	}
	base, g, err := c.rendered(unchanged, scale, "")
	if err != nil {
		return nil, fmt.Errorf("the graph that runs, as %s: %w", c.version, err)
	}
	if rolled := differing(before, base); len(rolled) > 0 {
		// The other version may mean another contract with the runtime. From here on that
		// is what a field is compared with.
		all = append(all, Field{Path: "apiVersion", Old: v1alpha1.SchemeGroupVersion.String(), New: c.version, Replaces: rolled})
		c.records = maps.Clone(c.records)
		maps.Copy(c.records, graph.RecordGraph(unchanged, g, graph.Running{}))
	}
	for _, change := range changes(nil, old, desired) {
		f := Field{Path: strings.TrimPrefix(change.at.String(), "spec.")}
		f.Old, f.New = change.describe()
		dgd, err := c.alone(with(old, change.at, change.new))
		if err == nil {
			var after map[string]service
			var changed *graph.Graph
			if after, changed, err = c.rendered(dgd, scale, c.restart(dgd)); err == nil {
				f.Replaces, f.Scales = differing(base, after), scaled(base, after)
				for _, cell := range c.exchanged(base, after, g, changed, c.restart(dgd)) {
					f.Replaces = append(f.Replaces, cell.Services...)
				}
				slices.Sort(f.Replaces)
				f.Replaces = slices.Compact(f.Replaces)
			}
		}
		f.Together = err != nil // it means something with others only
		all = append(all, f)
	}
	return all, nil
}

// shown is a graph in a version.
func shown(dgd *v1alpha1.DynamoGraphDeployment, version string) (unstructured.Unstructured, error) {
	var object unstructured.Unstructured
	stored := dgd.DeepCopy()
	stored.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))
	text, err := json.Marshal(stored)
	if err != nil {
		return object, err
	}
	converted, err := conversion.Convert(text, version)
	if err != nil {
		return object, err
	}
	return object, json.Unmarshal(converted.JSON, &object.Object)
}

// tree is a graph in the version of the new manifest: what the user says, without
// what the operator and kubectl note beside it.
func (c *comparison) tree(dgd *v1alpha1.DynamoGraphDeployment) (map[string]any, error) {
	object, err := shown(dgd, c.version)
	if err != nil {
		return nil, err
	}
	annotations := map[string]any{}
	for key, value := range object.GetAnnotations() {
		if strings.Contains(key, v1alpha1.GroupName+"/") && !slices.Contains(words, key) && !slices.Contains(graph.Records, key) {
			annotations[key] = value
		}
	}
	return map[string]any{"annotations": annotations, "spec": object.Object["spec"]}, nil
}

// alone is the graph that runs with another tree of fields.
func (c *comparison) alone(tree any) (*v1alpha1.DynamoGraphDeployment, error) {
	fields, _ := tree.(map[string]any)
	annotations, _ := fields["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	for _, key := range graph.Records {
		if value, there := c.records[key]; there {
			annotations[key] = value
		}
	}
	for key, value := range c.words {
		annotations[key] = value
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": c.version, "kind": v1alpha1.KindDynamoGraphDeployment, "spec": fields["spec"],
		"metadata": map[string]any{"name": c.seen.graph.Name, "namespace": c.seen.graph.Namespace, "annotations": annotations},
	})
	if err != nil {
		return nil, err
	}
	stored, err := conversion.Convert(text, v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		return nil, err
	}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	return dgd, json.Unmarshal(stored.JSON, dgd)
}

// differing are the services whose pods are made from something else.
func differing(before, after map[string]service) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		now, there := after[name]
		if there && before[name].kind != "" && now.kind != "" && (now.kind != before[name].kind || now.templates != before[name].templates) {
			names = append(names, name)
		}
	}
	return names
}

// scaled are the services that have another number of replicas, or come or go.
func scaled(before, after map[string]service) []string {
	var names []string
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, ran := before[name]
		is, runs := after[name]
		if ran != runs || was.replicas() != is.replicas() {
			names = append(names, name)
		}
	}
	return names
}
