package component

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/change"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

const corpus = "../../../../../shared/corpus-2026"

// TestWhatAWorkerWasToldIsReadBackAsWhatTheGraphMeans: a graph that nobody changed
// must not start a generation, whatever its fields are. The graphs are paired, so that
// frontends are among those that are read back; workers are as they are in others.
func TestWhatAWorkerWasToldIsReadBackAsWhatTheGraphMeans(t *testing.T) {
	for _, contract := range []graph.Contract{graph.ContractV1, graph.ContractSeed} {
		t.Run(string(contract), func(t *testing.T) {
			list, err := os.Open(filepath.Join(corpus, "index.csv"))
			if err != nil {
				t.Skip("no corpus here: ", err)
			}
			defer list.Close()
			rows, err := csv.NewReader(list).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			members := map[graph.Role]int{}
			for _, row := range rows[1:] {
				for _, dgd := range graphsIn(t, filepath.Join(corpus, row[0])) {
					readBack(t, dgd, contract, members)
				}
			}
			if members[graph.RoleWorker] == 0 || members[graph.RoleFrontend] == 0 {
				t.Errorf("the corpus has %v", members)
			}
			t.Log(members)
		})
	}
}

// TestAComponentKeepsItsSubType: v1beta1, in whose words it is stored, knows only those
// of workers that split the work, and the pods of all others have theirs as a label.
func TestAComponentKeepsItsSubType(t *testing.T) {
	for _, kind := range []v1alpha1.ComponentType{"worker", "prefill", "decode", "frontend", "planner", "tool", ""} {
		for _, sub := range []string{"", "prefill", "decode", "encode"} {
			t.Run(string(kind)+" "+sub, func(t *testing.T) {
				dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat"}}
				dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"s": {ComponentType: kind, SubComponentType: sub}, "w": {ComponentType: "worker"}}
				readBack(t, dgd, graph.ContractV1, map[graph.Role]int{})
				b := Builder{Graph: dgd, Defaults: graph.Defaults{Contract: graph.ContractRules{Forced: graph.ContractV1}}}
				g, err := graph.FromGraphDeployment(dgd, b.Defaults)
				if err != nil {
					t.Fatal(err)
				}
				made, err := b.Build(g, nil)
				if err != nil {
					t.Fatal(err)
				}
				made[0].SetOwnerReferences([]metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: dgd.Name, Controller: new(true)}})
				one, err := graph.FromComponentDeployment(made[0].(*v1alpha1.DynamoComponentDeployment), b.Defaults)
				if err != nil {
					t.Fatal(err)
				}
				want, got := g.Components[0], one.Components[0]
				if diff := cmp.Diff([]string{want.Type, want.SubType}, []string{got.Type, got.SubType}); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

// TestShadowsAreReadBack: v1beta1 knows one.
func TestShadowsAreReadBack(t *testing.T) {
	for _, mode := range []v1alpha1.SharingMode{v1alpha1.SharingIntraPod, v1alpha1.SharingInterPod} {
		for _, shadows := range []int32{0, 1, 2} {
			t.Run(fmt.Sprint(mode, shadows), func(t *testing.T) {
				dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat"}}
				dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"w": {
					ComponentType: "worker", GPUMemoryService: &v1alpha1.GPUMemoryService{Enabled: true, Mode: mode},
					Failover: &v1alpha1.Failover{Enabled: true, Mode: mode, NumShadows: shadows},
				}}
				members := map[graph.Role]int{}
				readBack(t, dgd, graph.ContractV1, members)
				if members[graph.RoleWorker] != 1 {
					t.Errorf("%v were read back", members)
				}
			})
		}
	}
}

// readBack makes the components of a graph, and reads them again.
func readBack(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment, contract graph.Contract, members map[graph.Role]int) {
	t.Helper()
	dgd.Namespace, dgd.UID = "ns", "u"
	d := graph.Defaults{Discovery: graph.DiscoveryKubernetes, Contract: graph.ContractRules{Forced: contract}}
	g, err := graph.FromGraphDeployment(dgd, d)
	if err != nil {
		t.Logf("left out: %s: %v", dgd.Name, err)
		return
	}
	g = g.Pair(map[string]string{v1alpha1.AnnotationGeneration: "12ab"}, graph.Running{})
	b := Builder{Graph: dgd, Defaults: d}
	made, err := b.Build(g, nil)
	if err != nil {
		t.Logf("left out: %s: %v", dgd.Name, err)
		return
	}
	for _, o := range made {
		o.SetOwnerReferences([]metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: dgd.Name, Controller: new(true)}})
		stored, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(stored, o); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range b.Members(g, snapshot.Snapshot{Owned: made}) {
		members[m.Stored.Role]++
		for _, c := range g.Components {
			if c.Name != m.Service {
				continue
			}
			if fields := change.Breaking(m.Stored, c); m.Foreign || len(fields) > 0 {
				t.Errorf("%s, %s: foreign %v, as if these had changed: %v", dgd.Name, c.Name, m.Foreign, fields)
			}
			if m.Generation != g.Generation || m.Stored.RuntimeNamespace != c.RuntimeNamespace {
				t.Errorf("%s, %s: generation %s in %s, and not %s in %s", dgd.Name, c.Name, m.Generation, m.Stored.RuntimeNamespace, g.Generation, c.RuntimeNamespace)
			}
		}
	}
}

// graphsIn reads the graphs of a file, as they are stored.
func graphsIn(t *testing.T, path string) []*v1alpha1.DynamoGraphDeployment {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		return nil // listed, and not copied
	}
	decoder := utilyaml.NewDocumentDecoder(file)
	defer decoder.Close()
	var all []*v1alpha1.DynamoGraphDeployment
	for {
		text := make([]byte, 1<<20)
		n, err := decoder.Read(text)
		if err != nil {
			return all
		}
		var head struct{ APIVersion, Kind string }
		if yaml.Unmarshal(text[:n], &head) != nil || head.Kind != v1alpha1.KindDynamoGraphDeployment {
			continue
		}
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if head.APIVersion == v1beta1.SchemeGroupVersion.String() {
			beta := &v1beta1.DynamoGraphDeployment{}
			if err := yaml.Unmarshal(text[:n], beta); err != nil {
				continue
			}
			dgd, _ = conversion.GraphToAlpha(beta)
		} else if err := yaml.Unmarshal(text[:n], dgd); err != nil {
			continue
		}
		all = append(all, dgd)
	}
}
