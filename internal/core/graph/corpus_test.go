package graph

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

const corpus = "../../../../shared/corpus-2026"

// Every published graph is read in its own version and, by way of the other, as the
// same graph.
func TestCorpusOf2026IsReadInBothVersions(t *testing.T) {
	list, err := os.Open(filepath.Join(corpus, "index.csv"))
	if err != nil {
		t.Skip("no corpus here: ", err)
	}
	defer list.Close()
	rows, err := csv.NewReader(list).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	graphs, equal := 0, 0
	for _, row := range rows[1:] {
		file, category := row[column["file"]], row[column["category"]]
		if category != "standalone" && category != "test-data" {
			continue
		}
		if row[column["schema"]] != "ok" {
			t.Logf("left out, no release admits it: %s (%s)", file, row[column["schema"]])
			continue
		}
		for _, contract := range []Contract{"", ContractSeed, ContractV1} {
			for _, text := range documents(t, filepath.Join(corpus, file)) {
				own, other, err := readBothWays(text, Defaults{Discovery: DiscoveryKubernetes, Contract: ContractRules{Forced: contract}})
				if own == nil && err == nil {
					continue // of another kind
				}
				graphs++
				switch diff := cmp.Diff(own, other, cmpopts.EquateEmpty()); {
				case err != nil:
					t.Errorf("%s: %v", file, err)
				case diff != "":
					t.Errorf("%s, contract %q: by way of the other version it is another graph (-own +other):\n%s", file, contract, diff)
				default:
					equal++
				}
			}
		}
	}
	if graphs == 0 {
		t.Fatal("the corpus has no graph")
	}
	t.Logf("%d of %d readings (each graph under the contract it chooses and under both) are the same in both versions", equal, graphs)
}

func documents(t *testing.T, path string) [][]byte {
	t.Helper()
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil // listed, and not copied
	}
	if err != nil {
		t.Fatal(err)
	}
	decoder := utilyaml.NewDocumentDecoder(file)
	defer decoder.Close()
	var all [][]byte
	for {
		text := make([]byte, 1<<20)
		n, err := decoder.Read(text)
		if err != nil {
			return all
		}
		all = append(all, text[:n])
	}
}

// readBothWays reads a graph in its own version, and after a conversion into the
// other; nil for another kind.
func readBothWays(text []byte, d Defaults) (own, other *Graph, err error) {
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(text, &head); err != nil || head.Kind != v1alpha1.KindDynamoGraphDeployment {
		return nil, nil, err
	}
	if head.APIVersion == v1beta1.SchemeGroupVersion.String() {
		dgd := &v1beta1.DynamoGraphDeployment{}
		if err := yaml.Unmarshal(text, dgd); err != nil {
			return nil, nil, err
		}
		if own, err = FromV1Beta1(dgd, d); err != nil {
			return nil, nil, err
		}
		stored, _ := conversion.GraphToAlpha(dgd)
		other, err = FromGraphDeployment(stored, d)
		return own, other, err
	}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := yaml.Unmarshal(text, dgd); err != nil {
		return nil, nil, err
	}
	if own, err = FromGraphDeployment(dgd, d); err != nil {
		return nil, nil, err
	}
	shown, _ := conversion.GraphToBeta(dgd)
	other, err = FromV1Beta1(shown, d)
	return own, other, err
}
