package config

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const page = "../../../docs/spec/configuration.md"

// rows are the keys of the configuration with their defaults, as the page has
// them in its tables.
func rows(prefix string, value reflect.Value) []string {
	var found []string
	for i := range value.NumField() {
		field, tag := value.Type().Field(i), strings.Split(value.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case tag[0] == "-": // not for a file
		case field.Anonymous:
			found = append(found, rows(prefix, value.Field(i))...)
		case field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[metav1.Duration]():
			found = append(found, rows(prefix+tag[0]+".", value.Field(i))...)
		default:
			found = append(found, fmt.Sprintf("| `%s` | %s |", prefix+tag[0], shown(value.Field(i))))
		}
	}
	return found
}

func shown(value reflect.Value) string {
	if d, ok := reflect.TypeAssert[metav1.Duration](value); ok {
		return "`" + d.Duration.String() + "`"
	}
	if value.IsZero() && value.Kind() != reflect.Bool && value.Kind() != reflect.Int {
		return ""
	}
	text, err := json.Marshal(value.Interface())
	if err != nil {
		panic(err)
	}
	return "`" + strings.Trim(string(text), `"`) + "`"
}

func TestThePageTellsEveryKeyAndItsDefault(t *testing.T) {
	t.Setenv("DYNAMO_LISTEN_HOST", "")
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("POD_NAME", "")
	t.Setenv("DYNAMO_FORWARD_PROXY", "")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	written = append(written, regexp.MustCompile("(?m)^\\| `[a-zA-Z0-9.]+` \\|[^|]*\\|").FindAllString(string(text), -1)...)
	want := rows("", reflect.ValueOf(Default()))
	slices.Sort(written)
	slices.Sort(want)
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("%s: a row of the table is missing or wrong (-want +got):\n%s", page, diff)
	}
}

func TestThePageTellsEveryFlag(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range textFlags {
		names = append(names, f.name)
	}
	for _, f := range switchFlags {
		names = append(names, f.name)
	}
	for _, f := range removedFlags {
		names = append(names, f.name)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "`--"+name+"`") {
			t.Errorf("%s does not tell of --%s", page, name)
		}
	}
}
