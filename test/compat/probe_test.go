package compat

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/workload"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

var num = regexp.MustCompile(`m-[0-9a-f]{8}`)

func TestProbe(t *testing.T) {
	dir := referenceDir(t)
	files := map[string][]corpus.Document{}
	for _, d := range corpus.All(t) {
		files[d.File] = append(files[d.File], d)
	}
	out, _ := os.Create("/tmp/compat-probe.txt")
	for _, path := range []workload.Provider{workload.ProviderComponent, workload.ProviderGrove} {
		total, equal := 0, 0
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if !slices.ContainsFunc(files[file], func(d corpus.Document) bool { return d.Object.GetKind() == v1alpha1.KindDynamoGraphDeployment }) {
				continue
			}
			theirs := index(reference(t, dir, path, file))
			mine := index(ours(t, path, file, files[file]))
			for id, o := range theirs {
				if o.GetLabels()["bench/preexisting"] != "" {
					continue
				}
				m, ok := mine[id]
				if !ok {
					fmt.Fprintf(out, "%s\t%s\t%s\tMISSING\n", path, file, id)
					continue
				}
				a, b := meaningful(o), meaningful(m)
				for k, v := range a {
					total++
					if b[k] == v {
						equal++
						continue
					}
					w, ok := b[k]
					if !ok {
						w = "-"
					}
					fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", path, file, id, k, v, w)
				}
				for k, v := range b {
					if _, ok := a[k]; !ok {
						fmt.Fprintf(out, "%s\t%s\t%s\t%s\t-\t%s\n", path, file, id, k, v)
					}
				}
			}
			for id := range mine {
				if _, ok := theirs[id]; !ok {
					fmt.Fprintf(out, "%s\t%s\t%s\tEXTRA\n", path, file, id)
				}
			}
		}
		fmt.Println(path, equal, total, float64(equal)/float64(total)*100)
	}
}
