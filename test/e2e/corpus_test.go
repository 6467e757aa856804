package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

// all takes what make test leaves to make e2e.
var all = flag.Bool("all", false, "deploy every published manifest and example, not a part of them")

// manifest is a file with graphs.
type manifest struct {
	file      string
	documents []corpus.Document
	// graphs are those of the documents as they are stored, in either version.
	graphs []*v1alpha1.DynamoGraphDeployment
}

// manifestsOf puts documents, which are in the order of their files, together. A
// file without a graph is none.
func manifestsOf(t *testing.T, documents []corpus.Document) []manifest {
	t.Helper()
	var found []manifest
	for _, d := range documents {
		if last := len(found) - 1; last < 0 || found[last].file != d.File {
			found = append(found, manifest{file: d.File})
		}
		m := &found[len(found)-1]
		m.documents = append(m.documents, d)
		if d.Object.GetKind() == v1alpha1.KindDynamoGraphDeployment {
			m.graphs = append(m.graphs, graphIn(t, d))
		}
	}
	return slices.DeleteFunc(found, func(m manifest) bool { return len(m.graphs) == 0 })
}

// graphIn is a graph as it is stored.
func graphIn(t *testing.T, d corpus.Document) *v1alpha1.DynamoGraphDeployment {
	t.Helper()
	dgd, beta := &v1alpha1.DynamoGraphDeployment{}, &v1beta1.DynamoGraphDeployment{}
	var err error
	if d.Object.GetAPIVersion() == v1beta1.SchemeGroupVersion.String() {
		err = json.Unmarshal(d.JSON, beta)
		dgd, _ = conversion.GraphToAlpha(beta)
	} else {
		err = json.Unmarshal(d.JSON, dgd)
	}
	if err != nil {
		t.Fatalf("%s: %v", d.Name(), err)
	}
	return dgd
}

// TestPublishedGraphsBecomeReadyAndAnswer deploys the manifests of January 2026,
// with what they expect to find in their namespace.
func TestPublishedGraphsBecomeReadyAndAnswer(t *testing.T) {
	tested := manifestsOf(t, corpus.All(t))
	if !*all {
		every := 3
		for i := range tested {
			if i%every == 0 {
				tested[i/every] = tested[i]
			}
		}
		tested = tested[:(len(tested)+every-1)/every]
	}
	becomeReadyAndAnswer(t, "published graphs of January 2026", shared, tested, nil)
}

// becomeReadyAndAnswer deploys manifests, each in a namespace of its own, and says
// how many graphs became ready, how many were asked, and what was left out.
func becomeReadyAndAnswer(t *testing.T, what string, cluster *localenv.Cluster, tested []manifest, left []corpus.LeftOut) {
	t.Helper()
	served := &unstructured.UnstructuredList{}
	served.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment + "List"))
	if err := cluster.Eventually(t.Context(), "v1beta1 to be served", func(ctx context.Context) error {
		return cluster.Client.List(ctx, served)
	}); err != nil {
		t.Fatal(err)
	}
	var (
		mu                    sync.Mutex
		graphs, ready, answer int
		silent                []string
	)
	t.Run("files", func(t *testing.T) {
		for _, m := range tested {
			graphs += len(m.graphs)
			t.Run(strings.ReplaceAll(m.file, "/", "_"), func(t *testing.T) {
				t.Parallel()
				asked, why := deploy(newWorldOn(t, cluster), m)
				mu.Lock()
				defer mu.Unlock()
				ready += len(m.graphs)
				answer += asked
				if why != "" {
					silent = append(silent, m.file+": "+why)
				}
			})
		}
	})
	slices.Sort(silent)
	line := fmt.Sprintf("%s: %d of %d ready, in %d files; %d frontends asked and answering", what, ready, graphs, len(tested), answer)
	if len(silent) > 0 {
		line += "; ready and not asked:\n  " + strings.Join(silent, "\n  ")
	}
	if len(left) > 0 {
		line += "\nleft out:"
		for _, l := range left {
			line += "\n  " + l.File + ": " + l.Why
		}
	}
	summary.Line(t, "%s", line)
}

// deploy applies a manifest, waits for its graphs, asks every frontend in it and
// counts them. If there is none to ask it says why.
func deploy(w world, m manifest) (asked int, silent string) {
	w.Helper()
	var objects []*unstructured.Unstructured
	for _, d := range m.documents {
		// Some manifests ask their reader to put the namespace, a registry or a tag in.
		text := strings.ReplaceAll(string(d.JSON), "${K8S_NAMESPACE}", w.namespace)
		text = blankImage.ReplaceAllStringFunc(text, func(image string) string { return blank.ReplaceAllString(image, "published") })
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			w.Fatalf("%s: %v", d.Name(), err)
		}
		object.SetNamespace(w.namespace)
		kind := object.GroupVersionKind()
		switch _, err := w.cluster.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); {
		case meta.IsNoMatchError(err):
			w.Logf("%s is left out: nothing here has to do with %s, and what it would make is supplied", d.Name(), kind.GroupKind())
		case err != nil:
			w.Fatalf("%s: %v", d.Name(), err)
		default:
			objects = append(objects, object)
		}
	}
	w.supply(objects)
	if err := w.cluster.Apply(w.ctx, objects); err != nil {
		w.Fatal(err)
	}
	for _, dgd := range m.graphs {
		stored := w.ready(dgd.Name)
		if !slices.ContainsFunc(m.graphs, namesModel) {
			continue
		}
		for _, url := range w.frontendURLs(stored) {
			w.answers(url)
			asked++
		}
	}
	switch {
	case asked > 0:
		return asked, ""
	case !slices.ContainsFunc(m.graphs, namesModel):
		return 0, "its workers are programs of their author that name no model"
	}
	w.Error("no frontend was asked")
	return 0, ""
}

// blank is what a reader fills in, blankImage an image with it, in JSON.
var (
	blank      = regexp.MustCompile(`<[^<>"]*>|\\u003c.*?\\u003e`)
	blankImage = regexp.MustCompile(`"image":"[^"]*"`)
)

// modelWords are by which a graph says that it serves a model: an engine, or the
// flag that names one.
var modelWords = regexp.MustCompile(`dynamo\.(vllm|sglang|trtllm|mocker)\b|--model\b`)

// namesModel is false for examples that show how to write a backend of one's own:
// which model that serves, if any, only its image knows.
func namesModel(dgd *v1alpha1.DynamoGraphDeployment) bool {
	text, err := json.Marshal(dgd.Spec)
	return err == nil && modelWords.Match(text)
}

// frontendURLs are where a graph is asked: at its frontend or, if a gateway is to
// pick a worker, at the frontends beside the workers.
func (w world) frontendURLs(dgd *v1alpha1.DynamoGraphDeployment) []string {
	w.Helper()
	if url := w.frontendURL(dgd); url != "" {
		return []string{url}
	}
	var urls []string
	for _, pod := range w.pods(w.ctx) {
		if pod.DeletionTimestamp == nil && pod.Labels[v1alpha1.LabelGraphName] == dgd.Name && slices.ContainsFunc(pod.Spec.Containers, servesHTTP) {
			urls = append(urls, fmt.Sprintf("http://%s:8000", pod.Status.PodIP))
		}
	}
	return urls
}

func servesHTTP(c corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "DYN_COMPONENT" && v.Value == "frontend" })
}

// TestPublishedGraphsOf2026BecomeReadyAndAnswer deploys the manifests of both
// versions that were published since February 2026, on nodes such as they ask for.
func TestPublishedGraphsOf2026BecomeReadyAndAnswer(t *testing.T) {
	documents, left := corpus.Of2026(t)
	tested, cluster := manifestsOf(t, documents), shared
	tested = slices.DeleteFunc(tested, func(m manifest) bool {
		why := unplaceable(t, m)
		if why != "" {
			left = append(left, corpus.LeftOut{File: m.file, Why: why})
		}
		return why != ""
	})
	if *all {
		nodes := fleetFor(tested, atOnce(t))
		var err error
		if cluster, err = start("published", everything, nodes.count()); err != nil {
			t.Fatal(err)
		}
		if err := nodes.furnish(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	} else {
		tested = core(slices.DeleteFunc(tested, func(m manifest) bool { return !fleetFor([]manifest{m}, 1).usual() }))
	}
	becomeReadyAndAnswer(t, "published graphs of February to August 2026", cluster, tested, left)
}

// core is a small manifest of every sort.
func core(manifests []manifest) []manifest {
	has := func(words ...string) func(manifest) bool {
		return func(m manifest) bool {
			return !slices.ContainsFunc(words, func(word string) bool {
				return !slices.ContainsFunc(m.documents, func(d corpus.Document) bool { return strings.Contains(string(d.JSON), word) })
			})
		}
	}
	const beta = `"nvidia.com/v1beta1"`
	var chosen []manifest
	for _, sort := range []func(manifest) bool{
		has(beta, `"frontend"`, `"worker"`),
		has(beta, `"prefill"`, `"decode"`),
		has(beta, `"multinode"`, "dynamo.vllm"),
		has(beta, `"resourceClaims"`),
		has(beta, `"gpuMemoryService"`, `"failover"`),
		has(beta, `"frontendSidecar"`, `"epp"`),
		has(`"nvidia.com/v1alpha1"`, `"subComponentType"`),
	} {
		var smallest *manifest
		for i := range manifests {
			if m := &manifests[i]; sort(*m) && (smallest == nil || m.pods() < smallest.pods()) {
				smallest = m
			}
		}
		if smallest != nil && !slices.ContainsFunc(chosen, func(m manifest) bool { return m.file == smallest.file }) {
			chosen = append(chosen, *smallest)
		}
	}
	return chosen
}

// pods is how many the manifest's graphs have.
func (m manifest) pods() int {
	pods := 0
	for _, dgd := range m.graphs {
		for _, service := range dgd.Spec.SortedServices() {
			pods += podsOf(service)
		}
	}
	return pods
}

// nodes is how many the manifest's pods need at most: one each, or a half if they
// leave half of its GPUs to others.
func (m manifest) nodes() int {
	halves := 0
	for _, dgd := range m.graphs {
		for _, service := range dgd.Spec.SortedServices() {
			halves += podsOf(service)
			if r := service.Resources; r != nil && r.Limits != nil {
				if gpus, err := strconv.Atoi(r.Limits.GPU); err == nil && gpus > gpusPerNode/2 {
					halves += podsOf(service)
				}
			}
		}
	}
	return (halves + 1) / 2
}

func podsOf(service *v1alpha1.SharedSpec) int {
	replicas, nodes := 1, 1
	if service.Replicas != nil {
		replicas = int(*service.Replicas)
	}
	if service.Multinode != nil {
		nodes = int(service.Multinode.NodeCount)
	}
	return replicas * nodes
}

// TestExamplesOfV1Beta1BecomeReadyAndAnswer deploys our own examples; their twins
// of v1alpha1 with all.
func TestExamplesOfV1Beta1BecomeReadyAndAnswer(t *testing.T) {
	tested := slices.DeleteFunc(manifestsOf(t, corpus.In(t, "../../examples/v1beta1")), func(m manifest) bool {
		return !*all && strings.Contains(m.file, "/")
	})
	becomeReadyAndAnswer(t, "examples of v1beta1", shared, tested, nil)
}
