package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

// all takes what make test leaves to make e2e.
var all = flag.Bool("all", false, "deploy every published manifest, not every third")

// TestPublishedGraphsBecomeReadyAndAnswer deploys published manifests whose
// graphs fit on single nodes, with what they expect to find in their namespace.
func TestPublishedGraphsBecomeReadyAndAnswer(t *testing.T) {
	files := map[string][]corpus.Document{}
	for _, d := range corpus.All(t) {
		files[d.File] = append(files[d.File], d)
	}
	var (
		mu           sync.Mutex
		ready, asked int
		graphs       int
		left         []string
	)
	t.Run("files", func(t *testing.T) {
		for n, file := range slices.Sorted(maps.Keys(files)) {
			if !*all && n%3 != 0 {
				continue
			}
			documents := files[file]
			here := graphsOf(t, documents)
			if len(here) == 0 {
				continue
			}
			graphs += len(here)
			if why := leftOut(here); why != "" {
				left = append(left, fmt.Sprintf("%s: %s", file, why))
				continue
			}
			t.Run(strings.ReplaceAll(file, "/", "_"), func(t *testing.T) {
				t.Parallel()
				answers := deploy(newWorld(t), documents, here)
				mu.Lock()
				defer mu.Unlock()
				ready += len(here)
				asked += answers
			})
		}
	})
	summary.Line(t, "published graphs: %d of %d ready, %d frontends asked and answering; left out:\n  %s",
		ready, graphs, asked, strings.Join(left, "\n  "))
}

func graphsOf(t *testing.T, documents []corpus.Document) []*v1alpha1.DynamoGraphDeployment {
	t.Helper()
	var graphs []*v1alpha1.DynamoGraphDeployment
	for _, d := range documents {
		if d.Object.GetKind() != v1alpha1.KindDynamoGraphDeployment {
			continue
		}
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := json.Unmarshal(d.JSON, dgd); err != nil {
			t.Fatalf("%s: %v", d.Name(), err)
		}
		graphs = append(graphs, dgd)
	}
	return graphs
}

// leftOut says why a manifest is not part of the test yet.
func leftOut(graphs []*v1alpha1.DynamoGraphDeployment) string {
	for _, dgd := range graphs {
		for name, service := range dgd.Spec.SortedServices() {
			if service.Resources != nil && len(service.Resources.Claims) > 0 {
				return name + " claims devices of a driver that is not here"
			}
		}
	}
	return ""
}

// deploy applies a manifest, asks every frontend in it and counts the answers.
func deploy(w world, documents []corpus.Document, graphs []*v1alpha1.DynamoGraphDeployment) int {
	w.Helper()
	var objects []*unstructured.Unstructured
	for _, d := range documents {
		// Some manifests ask their reader to put the namespace in.
		text := strings.ReplaceAll(string(d.JSON), "${K8S_NAMESPACE}", w.namespace)
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			w.Fatalf("%s: %v", d.Name(), err)
		}
		object.SetNamespace(w.namespace)
		objects = append(objects, object)
	}
	seed(w, documents, graphs)
	if err := w.cluster.Apply(w.ctx, objects); err != nil {
		w.Fatal(err)
	}
	asked := 0
	for _, dgd := range graphs {
		ready := w.ready(dgd.Name)
		url := w.frontendURL(ready)
		if url == "" || !speaksOpenAI(dgd) {
			continue
		}
		w.answers(url)
		asked++
	}
	if asked == 0 && speaksOpenAI(graphs[0]) {
		w.Error("no frontend was asked")
	}
	return asked
}

// speaksOpenAI is false for the example that shows how to write a backend of
// one's own: its frontend is a script that prints what its worker says.
func speaksOpenAI(dgd *v1alpha1.DynamoGraphDeployment) bool {
	return dgd.Name != "hello-world"
}

// seed makes what the graphs refer to and the manifest does not bring: Secrets,
// claims and ConfigMaps.
func seed(w world, documents []corpus.Document, graphs []*v1alpha1.DynamoGraphDeployment) {
	brought := map[string]bool{}
	for _, d := range documents {
		brought[d.Object.GetKind()+"/"+d.Object.GetName()] = true
	}
	once := func(kind, name string) bool {
		key := kind + "/" + name
		if name == "" || brought[key] {
			return false
		}
		brought[key] = true
		return true
	}
	secrets := map[string]map[string]string{}
	secret := func(name string, keys ...string) {
		if once("Secret", name) {
			secrets[name] = map[string]string{"HF_TOKEN": "token", "token": "token"}
		}
		for _, key := range keys {
			if secrets[name] != nil {
				secrets[name][key] = "value"
			}
		}
	}
	claim := func(name string) {
		if once("PersistentVolumeClaim", name) {
			w.create(&corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			})
		}
	}
	for _, dgd := range graphs {
		for _, pvc := range dgd.Spec.PVCs {
			claim(pvc.Name)
		}
		for _, service := range dgd.Spec.SortedServices() {
			seedService(w, service, once, secret, claim)
		}
	}
	for name, data := range secrets {
		w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, StringData: data})
	}
}

func seedService(w world, s *v1alpha1.SharedSpec, once func(kind, name string) bool, secret func(string, ...string), claim func(string)) {
	if s.EnvFromSecret != nil {
		secret(*s.EnvFromSecret)
	}
	for _, m := range s.VolumeMounts {
		claim(m.Name)
	}
	if s.ExtraPodSpec == nil {
		return
	}
	env := s.Envs
	if s.ExtraPodSpec.MainContainer != nil {
		env = append(slices.Clone(env), s.ExtraPodSpec.MainContainer.Env...)
	}
	for _, v := range env {
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			secret(v.ValueFrom.SecretKeyRef.Name, v.ValueFrom.SecretKeyRef.Key)
		}
	}
	if s.ExtraPodSpec.PodSpec == nil {
		return
	}
	for _, v := range s.ExtraPodSpec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			claim(v.PersistentVolumeClaim.ClaimName)
		case v.ConfigMap != nil && once("ConfigMap", v.ConfigMap.Name):
			w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: v.ConfigMap.Name}})
		case v.Secret != nil:
			secret(v.Secret.SecretName)
		}
	}
}
