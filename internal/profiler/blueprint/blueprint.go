// Package blueprint turns a configuration that was found into graphs: the one to
// deploy, from a template or from the user's own graph; its twin of mock
// engines; and the small one that is measured. It applies nothing.
package blueprint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
)

// Options is what a graph is made of beside its configuration.
type Options struct {
	Name    string
	Backend config.Backend
	// Model is the served name; Cache may hold its files.
	Model string
	Cache config.ModelCache
	// Image replaces that of every service, unless it is empty.
	Image      string
	MaxContext int
	PerNode    int
	Goal       config.SLA
	Budget     int
	// ProfileData names the ConfigMap that planner and mock engines mount.
	ProfileData string
	// Planner holds flags of the planner; enabled=false leaves it out.
	Planner map[string]string
	// Request is what a request of v1beta1 says besides; with one, graphs are
	// written as v1beta1, and have a planner only if it asks for one.
	Request *config.Request
	// Base is the user's own graph, or nil for a template.
	Base *v1alpha1.DynamoGraphDeployment
}

// Where the profile data are mounted, and the volume's name.
const (
	dataPath   = "/workspace/profiling_results"
	dataVolume = "planner-profile-data"
)

// Modes are those that the base graph can take: a template takes both, a graph
// of the user's stays what it is.
func (o Options) Modes(wanted []config.Mode) ([]config.Mode, error) {
	if o.Base == nil {
		return wanted, nil
	}
	is := config.Aggregated
	if _, ok := find(o.Base, Prefill); ok {
		is = config.Disaggregated
	} else if _, ok := find(o.Base, Serve); !ok {
		return nil, fmt.Errorf("graph %s has no worker", o.Base.Name)
	}
	if len(wanted) > 0 && !slices.Contains(wanted, is) {
		return nil, fmt.Errorf("graph %s is %s, but only %v is to be searched", o.Base.Name, is, wanted)
	}
	return []config.Mode{is}, nil
}

// Graph is the graph to deploy.
func Graph(c search.Candidate, o Options) (*v1alpha1.DynamoGraphDeployment, error) {
	g, err := shape(c, o)
	if err != nil {
		return nil, err
	}
	o.addPlanner(g, c, string(o.Backend))
	return g, nil
}

// Trial is one engine of each kind, to be measured under a name of its own.
func Trial(c search.Candidate, o Options) (*v1alpha1.DynamoGraphDeployment, error) {
	c.Decode.Replicas = 1
	if c.Prefill != nil {
		one := *c.Prefill
		one.Replicas = 1
		c.Prefill = &one
	}
	return shape(c, o)
}

// shape is the graph without a planner.
func shape(c search.Candidate, o Options) (*v1alpha1.DynamoGraphDeployment, error) {
	g := template(o, c.Mode)
	if o.Base != nil {
		g = o.Base.DeepCopy()
		g.TypeMeta, g.Status = typeMeta(), v1alpha1.DynamoGraphDeploymentStatus{}
		g.ObjectMeta = metav1.ObjectMeta{Labels: o.Base.Labels, Annotations: o.Base.Annotations}
		for name, s := range g.Spec.SortedServices() {
			if s.ComponentType == v1alpha1.ComponentTypePlanner {
				delete(g.Spec.Services, name)
			}
		}
	}
	g.Name = o.Name
	workers := map[Role]search.Worker{Serve: c.Decode}
	if c.Prefill != nil {
		workers = map[Role]search.Worker{Prefill: *c.Prefill, Decode: c.Decode}
	}
	for _, role := range slices.Sorted(maps.Keys(workers)) {
		name, ok := find(g, role)
		if !ok {
			return nil, fmt.Errorf("graph %s has no worker to %s", g.Name, role)
		}
		if err := fit(g.Spec.Services[name], o, workers[role], role); err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
	}
	if o.Cache.PVCName != "" {
		mountCache(g, o)
	}
	if o.Image != "" {
		for _, s := range g.Spec.SortedServices() {
			if container := s.ExtraPodSpec; container != nil && container.MainContainer != nil {
				container.MainContainer.Image = o.Image
			}
		}
	}
	return g, nil
}

// fit gives a service its engine's layout.
func fit(s *v1alpha1.SharedSpec, o Options, w search.Worker, role Role) error {
	s.Replicas = new(int32(w.Replicas))
	n := w.Layout.GPUs()
	if s.Resources == nil {
		s.Resources = &v1alpha1.Resources{}
	}
	if s.Resources.Limits == nil {
		s.Resources.Limits = &v1alpha1.ResourceItem{}
	}
	gpus := strconv.Itoa(min(n, o.PerNode))
	s.Resources.Limits.GPU = gpus
	if s.Resources.Requests != nil && s.Resources.Requests.GPU != "" {
		s.Resources.Requests.GPU = gpus
	}
	const fabric = "rdma/ib"
	if _, given := s.Resources.Limits.Custom[fabric]; given {
		s.Resources.Limits.Custom[fabric] = gpus
	}
	s.Multinode = nil
	if nodes := w.Layout.Nodes(o.PerNode); nodes > 1 {
		s.Multinode = &v1alpha1.Multinode{NodeCount: int32(nodes)}
	}
	l := openLine(mainContainer(s))
	if err := launch(l, o, w, role); err != nil {
		return err
	}
	l.close()
	return nil
}

// find names the service that plays a role: by its refined type, its type, or
// the customary names.
func find(g *v1alpha1.DynamoGraphDeployment, role Role) (string, bool) {
	customary := map[Role][]string{
		Prefill: {"VllmPrefillWorker", "TRTLLMPrefillWorker", "prefill"},
		Decode:  {"VllmDecodeWorker", "TRTLLMDecodeWorker", "decode"},
	}
	tests := []func(string, *v1alpha1.SharedSpec) bool{
		func(_ string, s *v1alpha1.SharedSpec) bool { return s.SubComponentType == string(role) },
		func(_ string, s *v1alpha1.SharedSpec) bool { return string(s.ComponentType) == string(role) },
		func(name string, _ *v1alpha1.SharedSpec) bool { return slices.Contains(customary[role], name) },
	}
	if role == Serve {
		tests = []func(string, *v1alpha1.SharedSpec) bool{func(_ string, s *v1alpha1.SharedSpec) bool {
			return s.ComponentType == v1alpha1.ComponentTypeWorker || s.ComponentType == v1alpha1.ComponentTypeDecode
		}}
	}
	for _, test := range tests {
		for name, s := range g.Spec.SortedServices() {
			if test(name, s) {
				return name, true
			}
		}
	}
	return "", false
}

// modelPath is where the engine reads the model.
func (o Options) modelPath() string {
	if o.Cache.PVCName == "" {
		return o.Model
	}
	path := o.Cache.MountPath
	if o.Cache.PVCPath != "" {
		path += "/" + o.Cache.PVCPath
	}
	return path
}

// mountCache gives every engine and the frontend the claim with the model.
// v1beta1 has no claims of a graph; its pods name them.
func mountCache(g *v1alpha1.DynamoGraphDeployment, o Options) {
	if o.Request == nil {
		g.Spec.PVCs = append(g.Spec.PVCs, v1alpha1.PVC{Name: o.Cache.PVCName, Create: new(false)})
	}
	for _, s := range g.Spec.SortedServices() {
		if o.Request == nil {
			s.VolumeMounts = append(s.VolumeMounts, v1alpha1.VolumeMount{Name: o.Cache.PVCName, MountPoint: o.Cache.MountPath})
		} else {
			mountVolume(s, corev1.VolumeMount{Name: o.Cache.PVCName, MountPath: o.Cache.MountPath}, corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: o.Cache.PVCName},
			})
		}
		if s.ComponentType == v1alpha1.ComponentTypeFrontend {
			c := mainContainer(s)
			if len(c.Command) == 0 && len(c.Args) == 0 {
				c.Command, c.Args = []string{"python3", "-m", "dynamo.frontend"}, nil
			}
			l := openLine(c)
			l.set(o.Model, "--model-name")
			l.set(o.modelPath(), "--model-path")
			l.close()
		}
	}
}

func mainContainer(s *v1alpha1.SharedSpec) *corev1.Container {
	if s.ExtraPodSpec == nil {
		s.ExtraPodSpec = &v1alpha1.ExtraPodSpec{}
	}
	if s.ExtraPodSpec.MainContainer == nil {
		s.ExtraPodSpec.MainContainer = &corev1.Container{}
	}
	return s.ExtraPodSpec.MainContainer
}

// YAML is a graph as a manifest, in the version that was asked in.
func (o Options) YAML(g *v1alpha1.DynamoGraphDeployment) (string, error) {
	var shown any = g
	if o.Request != nil {
		g = g.DeepCopy()
		if g.Annotations == nil {
			g.Annotations = map[string]string{}
		}
		g.Annotations[v1alpha1.AnnotationWrittenAs] = conversion.Beta
		beta, _ := conversion.GraphToBeta(g)
		if o.Base == nil {
			// It says nothing that v1beta1 cannot; where v1alpha1 would write it is of
			// no use.
			delete(beta.Annotations, v1alpha1.AnnotationGraphPayload)
			delete(beta.Annotations, v1alpha1.AnnotationWrittenAs)
		}
		shown = beta
	}
	text, err := yaml.Marshal(shown)
	if err != nil {
		return "", fmt.Errorf("write graph %s: %w", g.Name, err)
	}
	return string(text), nil
}

// Parse reads a graph of the user's.
func Parse(text []byte) (*v1alpha1.DynamoGraphDeployment, error) {
	g := &v1alpha1.DynamoGraphDeployment{}
	if err := yaml.UnmarshalStrict(text, g); err != nil {
		return nil, fmt.Errorf("read base graph: %w", err)
	}
	if g.Kind != v1alpha1.KindDynamoGraphDeployment {
		return nil, fmt.Errorf("read base graph: it is a %q", g.Kind)
	}
	return g, nil
}
