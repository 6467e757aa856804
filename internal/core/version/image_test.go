package version

import "testing"

func TestImagesOfABuild(t *testing.T) {
	for want, got := range map[string]string{
		"dynamo-operator:dev":                     Image(Operator),
		"registry.example/team/dynamo-mocker:dev": ImageIn("registry.example/team/", Mocker),
		"localhost:5000/dynamo-profiler:v1":       Join("localhost:5000", Profiler, "v1"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestImageBesideAnother(t *testing.T) {
	for name, c := range map[string]struct{ image, want string }{
		"the same registry and tag":          {"registry.example:5000/team/dynamo-operator:v2", "registry.example:5000/team/dynamo-profiler:v2"},
		"no registry":                        {"dynamo-operator:v2", "dynamo-profiler:v2"},
		"a name of its own tells nothing":    {"registry.example/operators/dynamo:v2", ""},
		"a digest is of one image":           {"registry.example/dynamo-operator:v2@sha256:00", ""},
		"a port is no tag, so there is none": {"registry.example:5000/dynamo-operator", ""},
	} {
		if got, found := Beside(c.image, Profiler); got != c.want || found != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, found, c.want)
		}
	}
}

func TestShortNamesMeanOurOwn(t *testing.T) {
	for name, c := range map[string]struct {
		short, image string
		want         bool
	}{
		"another tag":          {"dynamo-profiler:dev", "registry.example/team/dynamo-profiler:v2", true},
		"no tag":               {"dynamo-profiler", "dynamo-profiler:v2", true},
		"a registry of others": {"registry.example/dynamo-profiler:v2", "registry.example/team/dynamo-profiler:v2", false},
		"another program":      {"profiler:v2", "dynamo-profiler:v2", false},
	} {
		if got := Same(c.short, c.image); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
