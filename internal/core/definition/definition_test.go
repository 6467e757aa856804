package definition

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/config/crd"
)

func sent(t *testing.T, p Patch) string {
	t.Helper()
	if p == nil {
		return ""
	}
	raw, err := p.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

var ours = Converter{Service: types.NamespacedName{Namespace: "ops", Name: "hook"}, Path: "/convert", Trusted: []byte("CA")}

// graphs is a definition with two versions, changed by edits.
func graphs(edits ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "graphs", ResourceVersion: "7"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1alpha1", Served: true, Storage: true}, {Name: "v1beta1"},
		}},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1alpha1"}},
	}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

func served(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[1].Served = true }
func stored(d *apiextensionsv1.CustomResourceDefinition) {
	d.Status.StoredVersions = append(d.Status.StoredVersions, "v1beta1")
}
func frozenBeta(d *apiextensionsv1.CustomResourceDefinition) {
	d.Spec.Versions[1] = frozen(d.Spec.Versions[1])
}
func by(c Converter) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Conversion = c.conversion() }
}
func injected(d *apiextensionsv1.CustomResourceDefinition) {
	d.Annotations = map[string]string{InjectAnnotation: "ops/cert"}
}

func TestConnect(t *testing.T) {
	manager, renewed, unknown, elsewhere, byURL := ours, ours, ours, ours, ours
	manager.InjectFrom = "ops/cert"
	renewed.Trusted = []byte("CA2")
	unknown.Trusted = []byte(" \n")
	elsewhere.Service.Name = "original"
	byURL.URL = "https://127.0.0.1:1"
	const stanza = `{"op":"add","path":"/spec/conversion","value":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"ops","name":"hook","path":"/convert","port":443},"caBundle":"`
	for rule, c := range map[string]struct {
		converter Converter
		crd       *apiextensionsv1.CustomResourceDefinition
		want      string
		fails     bool
	}{
		"a definition without a converter is led to ours":   {ours, graphs(), stanza, false},
		"only if nobody changed it since it was seen":       {ours, graphs(), `[{"op":"test","path":"/metadata/resourceVersion","value":"7"}`, false},
		"one that leads here is left alone":                 {ours, graphs(by(ours)), "", false},
		"a new authority is written":                        {renewed, graphs(by(ours)), `"caBundle":"Q0Ey"`, false},
		"never none":                                        {unknown, graphs(by(ours)), "", true},
		"the original's is replaced":                        {ours, graphs(by(elsewhere)), stanza, false},
		"a URL is asked instead of a Service":               {byURL, graphs(), `"url":"https://127.0.0.1:1/convert"`, false},
		"cert-manager is told to keep the authority":        {manager, graphs(by(ours)), `{"op":"add","path":"/metadata/annotations","value":{"cert-manager.io/inject-ca-from":"ops/cert"}}`, false},
		"what cert-manager has written since is left alone": {manager, graphs(by(renewed), injected), "", false},
	} {
		t.Run(rule, func(t *testing.T) {
			patch, err := c.converter.Connect(c.crd)
			if (err != nil) != c.fails {
				t.Fatal(err)
			}
			if got := sent(t, patch); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("sends %s, want %s", got, c.want)
			}
		})
	}
}

func TestServe(t *testing.T) {
	unverified := ours
	unverified.Trusted = nil
	on := `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"replace","path":"/spec/versions/1/served","value":true}]`
	for rule, c := range map[string]struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want string
	}{
		"a version that is converted is served":       {graphs(by(ours)), on},
		"one that is not converted is not":            {graphs(), ""},
		"nor is one whose converter nobody can trust": {graphs(by(unverified)), ""},
		"one that is served is left alone":            {graphs(by(ours), served), ""},
		"one that was frozen is made as it is shipped": {graphs(by(ours), served, frozenBeta),
			`[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"replace","path":"/spec/versions/1","value":{"name":"v1beta1","served":true,"storage":false}}]`},
	} {
		if diff := cmp.Diff(c.want, sent(t, Serve(c.crd, graphs()))); diff != "" {
			t.Errorf("%s: %s", rule, diff)
		}
	}
}

func TestWithdraw(t *testing.T) {
	const off = `{"op":"replace","path":"/spec/versions/1/served","value":false}`
	const freeze = `{"op":"replace","path":"/spec/versions/1","value":{"name":"v1beta1","served":true,"storage":false,"deprecated":true,`
	const none = `{"op":"add","path":"/spec/conversion","value":{"strategy":"None"}}`
	for rule, c := range map[string]struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want []string
		not  string
	}{
		"what is served is frozen and nobody asked":      {graphs(by(ours), served), []string{freeze, none}, "annotations"},
		"what is frozen stays so":                        {graphs(served, frozenBeta), nil, "op"},
		"what is stored as v1beta1 is still converted":   {graphs(by(ours), served, stored), []string{off}, "conversion"},
		"cert-manager need not look after it any longer": {graphs(by(ours), served, injected), []string{freeze, none, `{"op":"remove","path":"/metadata/annotations/cert-manager.io~1inject-ca-from"}`}, "\x00"},
		"where there is nothing to do nothing is sent":   {graphs(), nil, "op"},
	} {
		got := sent(t, Withdraw(c.crd))
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: sends %s, want %s", rule, got, want)
			}
		}
		if strings.Contains(got, c.not) {
			t.Errorf("%s: sends %s", rule, got)
		}
	}
}

func TestAnUpdateOfTheDefinitionsTakesNothingFromReaders(t *testing.T) {
	unverified := ours
	unverified.Trusted = nil
	for rule, c := range map[string]struct {
		live *apiextensionsv1.CustomResourceDefinition
		want bool
	}{
		"what is served and converted stays served":      {graphs(by(ours), served), true},
		"what is served without a converter does not":    {graphs(served), false},
		"nor does what nobody can trust":                 {graphs(by(unverified), served), false},
		"a converter alone is no reason to begin":        {graphs(by(ours)), false},
		"nor is a definition from before there were two": {&apiextensionsv1.CustomResourceDefinition{}, false},
	} {
		shipped := graphs()
		Keep(shipped, c.live)
		if Served(shipped) != c.want {
			t.Errorf("%s: served %t", rule, Served(shipped))
		}
	}
}

// TestAnUpdateOfTheDefinitionsLeavesWhatIsFrozen because the garbage collector knows
// objects by it.
func TestAnUpdateOfTheDefinitionsLeavesWhatIsFrozen(t *testing.T) {
	live, shipped := graphs(served, frozenBeta), graphs()
	Keep(shipped, live)
	if diff := cmp.Diff(live.Spec.Versions, shipped.Spec.Versions); diff != "" {
		t.Error(diff)
	}
}

// TestTheListIsTheDefinitionsThatHaveTwoVersions because a right, a policy and an
// uninstallation go by it.
func TestTheListIsTheDefinitionsThatHaveTwoVersions(t *testing.T) {
	all, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{Adapters}
	for _, d := range all {
		if HasBeta(d) && d.Name != Adapters {
			want = append(want, d.Name)
		}
		if Served(d) || HasBeta(d) && !StoresAlpha(d) {
			t.Errorf("%s is shipped with v1beta1 served, or stored", d.Name)
		}
	}
	if diff := cmp.Diff(want, Converted); diff != "" {
		t.Error(diff)
	}
}
