package requestplan

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graphoverride"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
)

// Generated is the graph that a profiler found, and the ConfigMaps that it
// mounts.
type Generated struct {
	Graph  *v1alpha1.DynamoGraphDeployment
	Extras []*corev1.ConfigMap
	// Version is the one that the graph is shown in.
	Version string
	// Ignored are other documents of the output, by kind and name.
	Ignored []string
}

// generate turns the output of a Job that succeeded into the graph.
func generate(r *v1alpha1.DynamoGraphDeploymentRequest, s Sight, p Policy, step Step) Step {
	s, receipt, err := prove(r, s)
	if err != nil {
		return step.fail(Finding{
			Type: v1alpha1.ConditionSpecGenerated, Reason: v1alpha1.ReasonOutputNotProven,
			Message: err.Error() + "; nothing is made from it. Change the request, or make it again, to have it profiled anew",
		})
	}
	step.Receipt = receipt
	found, targets, err := read(r, s)
	if err == nil {
		found.workers(s.Record)
		err = found.override(s.Record.Spec.Overrides)
	}
	if err == nil {
		found.Version = s.Record.Version
		found.adapt(r, s.Record.Spec)
		err = p.valid(found.Graph)
	}
	if err != nil {
		if f, own := err.(refusal); own { //nolint:errorlint // made by read, never wrapped
			return step.fail(Finding(f))
		}
		return step.fail(Finding{Type: v1alpha1.ConditionSpecGenerated, Reason: v1alpha1.ReasonSpecGenerationFailed, Message: err.Error()})
	}
	step.say(Finding{v1alpha1.ConditionProfiling, v1alpha1.ReasonProfilingCompleted, "", true})
	if len(found.Extras) > 0 {
		if _, denied := p.permit(r, s.Record.Spec, s.Consent, extraRights); denied != nil {
			return step.wait(v1alpha1.ConditionSpecGenerated, denied)
		}
	}
	step.Generated, step.Wants, step.Phase = &found, Extras, profileoutput.PhaseDone
	step.State = v1alpha1.RequestStateReady
	if s.Record.Spec.AutoApply {
		step.State = v1alpha1.RequestStateDeploying
	}
	step.say(Finding{v1alpha1.ConditionSpecGenerated, v1alpha1.ReasonSpecGenerated, strings.TrimPrefix(targets.chosen+found.ignored(), "; "), true})
	if targets.Type != "" {
		step.say(targets.Finding)
	}
	return step
}

// refusal is a profiler's own word that there is no graph.
type refusal Finding

func (r refusal) Error() string { return r.Message }

// targets is what a profiler says about the graph it chose.
type targets struct {
	Finding
	chosen string
}

// read finds the graph that the request wants in the output.
func read(r *v1alpha1.DynamoGraphDeploymentRequest, s Sight) (Generated, targets, error) {
	mock := s.Record.Spec.UseMocker
	text, direct := s.Output[profileoutput.KeyResult]
	if !direct {
		key := profileoutput.KeyGraph
		_, one := s.Record.Question()
		switch {
		case one:
			key = profileoutput.KeyFinalGraph // of mock engines, if that was asked
		case mock:
			key = profileoutput.KeyMockerGraph
		}
		text, found := s.Output[key]
		if !found {
			return Generated{}, targets{}, fmt.Errorf("the profiler left no %s", key)
		}
		g, err := documents(text)
		if err != nil {
			return Generated{}, targets{}, fmt.Errorf("read %s: %w", key, err)
		}
		return g, targets{}, nil
	}
	res, err := profileoutput.ParseResult(text)
	if err != nil {
		return Generated{}, targets{}, err
	}
	if res.State == profileoutput.Failed {
		return Generated{}, targets{}, refusal(failed(string(res.Reason), res.Message))
	}
	manifest := res.GeneratedDeployment
	if mock {
		manifest = res.MockerDeployment
	}
	g, err := documents(manifest)
	if err != nil {
		return Generated{}, targets{}, fmt.Errorf("read the graph of %s: %w", profileoutput.KeyResult, err)
	}
	elsewhere := GraphKey(r, s.Record.Spec).Namespace != r.Namespace
	if elsewhere && res.ProfileData != "" && s.ProfileData == nil {
		return Generated{}, targets{}, fmt.Errorf("ConfigMap %s, which the graph mounts, is gone", res.ProfileData)
	}
	if elsewhere && s.ProfileData != nil {
		g.Extras = append(g.Extras, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.ProfileData.Name}, Data: s.ProfileData.Data})
	}
	return g, judged(res), nil
}

// judged says which targets are met, by how much, and what would meet the rest.
func judged(res profileoutput.Result) targets {
	t := targets{
		Finding: Finding{Type: v1alpha1.ConditionTargetsMet, Reason: v1alpha1.ReasonTargetsMet, OK: res.SLAMet},
		chosen:  res.Chosen,
	}
	var lines []string
	for _, target := range res.Targets {
		lines = append(lines, target.String())
	}
	if !res.SLAMet {
		t.Reason = v1alpha1.ReasonTargetsMissed
		if res.Remedy != "" {
			lines = append(lines, res.Remedy)
		}
	}
	t.Message = strings.Join(lines, "; ")
	return t
}

// mostIgnored is how many ignored documents a condition names.
const mostIgnored = 5

// ignored says which documents nothing is made of. The author of a request may
// create graphs, and gets nothing else by one.
func (g Generated) ignored() string {
	if len(g.Ignored) == 0 {
		return ""
	}
	names := g.Ignored
	more := ""
	if len(names) > mostIgnored {
		names, more = names[:mostIgnored], fmt.Sprintf(" and %d more", len(names)-mostIgnored)
	}
	return fmt.Sprintf("; ignored in the profiler's output: %s%s (a request makes one graph and the ConfigMaps beside it)", strings.Join(names, ", "), more)
}

// documents reads a stream of YAML: one graph, and ConfigMaps beside it. Of
// several graphs the last counts; the others, and other kinds, are named as ignored.
func documents(text string) (Generated, error) {
	var g Generated
	for reader := yamlreader.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Generated{}, err
		}
		var kind metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return Generated{}, err
		}
		switch kind.Kind {
		case v1alpha1.KindDynamoGraphDeployment:
			if g.Graph != nil {
				g.Ignored = append(g.Ignored, named(kind.Kind, g.Graph.Name))
			}
			var raw []byte
			if raw, err = yaml.YAMLToJSON(document); err == nil {
				g.Graph, _, err = graphIn(raw)
			}
		case "ConfigMap":
			extra := &corev1.ConfigMap{}
			err = yaml.Unmarshal(document, extra)
			g.Extras = append(g.Extras, extra)
		default:
			if !empty(document) {
				g.Ignored = append(g.Ignored, named(kind.Kind, kind.Name))
			}
		}
		if err != nil {
			return Generated{}, fmt.Errorf("%s: %w", kind.Kind, err)
		}
	}
	if g.Graph == nil {
		return Generated{}, errors.New("there is no DynamoGraphDeployment in it")
	}
	return g, nil
}

// graphIn reads a graph of either version into the one that is stored.
func graphIn(raw []byte) (dgd *v1alpha1.DynamoGraphDeployment, version string, err error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, "", err
	}
	if head.APIVersion != v1beta1.SchemeGroupVersion.String() {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		return dgd, conversion.Alpha, json.Unmarshal(raw, dgd)
	}
	beta := &v1beta1.DynamoGraphDeployment{}
	if err := json.Unmarshal(raw, beta); err != nil {
		return nil, "", err
	}
	dgd, _ = conversion.GraphToAlpha(beta)
	return dgd, conversion.Beta, nil
}

// override puts what the user wants different over the graph.
func (g *Generated) override(o *v1alpha1.RequestOverrides) error {
	if o == nil || o.DGD == nil {
		return nil
	}
	over, err := graphoverride.Parse(o.DGD)
	if err != nil {
		return err
	}
	g.Graph, err = over.Apply(g.Graph)
	return err
}

// empty reports whether a document says nothing, as one of comments alone does.
func empty(document []byte) bool {
	var content any
	return yaml.Unmarshal(document, &content) == nil && content == nil
}

func named(kind, name string) string {
	return strings.TrimSpace(cmp.Or(kind, "a document without kind") + " " + name)
}

// adapt makes what a profiler found the request's own: names that two requests
// cannot share, labels that lead back, and what the user overrides.
func (g *Generated) adapt(r *v1alpha1.DynamoGraphDeploymentRequest, spec v1alpha1.DynamoGraphDeploymentRequestSpec) {
	key := GraphKey(r, spec)
	renamed := map[string]string{}
	for _, extra := range g.Extras {
		name := graph.RequestedConfigMap(r.Name, extra.Name)
		renamed[extra.Name] = name
		extra.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: key.Namespace, Labels: graph.RequestLabels(r)}
	}
	o := ptr.Deref(spec.DeploymentOverrides, v1alpha1.DeploymentOverrides{})
	g.Graph.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindDynamoGraphDeployment}
	g.Graph.ObjectMeta = metav1.ObjectMeta{
		Name: key.Name, Namespace: key.Namespace,
		Labels:      merged(g.Graph.Labels, o.Labels, graph.RequestLabels(r)),
		Annotations: merged(g.Graph.Annotations, o.Annotations),
	}
	g.Graph.Status = v1alpha1.DynamoGraphDeploymentStatus{}
	for _, service := range g.Graph.Spec.SortedServices() {
		rename(service, renamed)
	}
}

// rename leads the volumes and variables of a service to renamed ConfigMaps.
func rename(s *v1alpha1.SharedSpec, renamed map[string]string) {
	follow := func(name *string) {
		if to, found := renamed[*name]; found {
			*name = to
		}
	}
	if s == nil || s.ExtraPodSpec == nil || s.ExtraPodSpec.PodSpec == nil {
		return
	}
	for i := range s.ExtraPodSpec.Volumes {
		if source := s.ExtraPodSpec.Volumes[i].ConfigMap; source != nil {
			follow(&source.Name)
		}
		if source := s.ExtraPodSpec.Volumes[i].Projected; source != nil {
			for j := range source.Sources {
				if part := source.Sources[j].ConfigMap; part != nil {
					follow(&part.Name)
				}
			}
		}
	}
}

// merged joins maps; the later ones win.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Raw is the graph as the status shows it: in the version that was asked in.
func (g Generated) Raw() *runtime.RawExtension {
	var shown any = g.Graph
	if g.Version == conversion.Beta {
		shown, _ = conversion.GraphToBeta(g.Graph)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shown)
	if err != nil {
		panic(err) // a typed object of ours
	}
	delete(fields, "status")
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return &runtime.RawExtension{Raw: text}
}
