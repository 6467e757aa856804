package dormancy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Settings are what a graph says about scaling to zero.
type Settings struct {
	// After is how long it has to be without a request.
	After time.Duration
	// Timeout is how long a request is held while the graph wakes.
	Timeout time.Duration
}

// Bounds of what a graph may say.
const (
	LeastAfter     = 10 * time.Second
	MostAfter      = 30 * 24 * time.Hour
	LeastTimeout   = time.Second
	MostTimeout    = 30 * time.Minute
	defaultTimeout = 10 * time.Minute
)

const (
	mostRenewal  = 30 * time.Second
	leastRenewal = time.Second
)

// Renewal is how often activators tell at most that requests go on. One that wakes the
// graph is told at once.
func (s Settings) Renewal() time.Duration { return max(leastRenewal, min(mostRenewal, s.After/3)) }

// Read is what the annotations of a graph say. Without a time that can be read it does not
// scale to zero.
func Read(annotations map[string]string) (s Settings, on bool) {
	after, err := ParseAfter(annotations[v1alpha1.AnnotationScaleToZeroAfter])
	if err != nil {
		return s, false
	}
	s = Settings{After: after, Timeout: defaultTimeout}
	if timeout, err := ParseTimeout(annotations[v1alpha1.AnnotationActivationTimeout]); err == nil {
		s.Timeout = timeout
	}
	return s, true
}

// ParseAfter reads the value of AnnotationScaleToZeroAfter.
func ParseAfter(value string) (time.Duration, error) { return parse(value, LeastAfter, MostAfter) }

// ParseTimeout reads the value of AnnotationActivationTimeout.
func ParseTimeout(value string) (time.Duration, error) {
	return parse(value, LeastTimeout, MostTimeout)
}

func parse(value string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("%q is no time from %s to %s", value, least, most)
	}
	return d, nil
}

// Unsupported says why a graph that asks to scale to zero cannot; empty if it can. Its
// frontends are given by name.
func Unsupported(gang bool, frontends map[string]*corev1.PodSpec) string {
	for _, name := range slices.Sorted(maps.Keys(frontends)) {
		if spec := frontends[name]; spec != nil && spec.AutomountServiceAccountToken != nil && !*spec.AutomountServiceAccountToken {
			return "service " + name + " mounts no token of its account (automountServiceAccountToken), and could not say that it was asked"
		}
	}
	switch {
	case gang:
		return "Grove runs the graph, and a gang cannot be without its workers"
	case len(frontends) == 0:
		return "no service is a frontend, where requests could be held"
	default:
		return ""
	}
}

// MostDeclared is how many bytes the names of models take at most that a Lease declares.
const MostDeclared = 8 << 10

// Declared is what a Lease says of the models that workers are told to serve. Names beyond
// what there is room for are left out.
func Declared(models []string) string {
	text := []byte("[")
	for _, model := range slices.Compact(slices.Sorted(slices.Values(models))) {
		name, err := json.Marshal(model)
		if err != nil {
			panic(err) // a string
		}
		if len(text)+len(name)+len(",]") > MostDeclared {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(text, name...)
	}
	return string(text) + "]"
}
