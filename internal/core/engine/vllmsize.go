package engine

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// vllmSizes are the degrees of parallelism that a command line asks for.
type vllmSizes struct {
	tensor, pipeline, data int
	// unknown are the arguments that only the pod knows; each counts as 1.
	unknown []string
}

// maxSize is more than any machine has; it keeps products small.
const maxSize = 1 << 16

// readSizes counts 1 for a size that is not given.
func readSizes(s Spec) (vllmSizes, error) {
	sizes := vllmSizes{tensor: 1, pipeline: 1, data: 1}
	args := arguments(graph.EngineVLLM, s.Command, s.Args)
	for _, size := range []struct {
		into  *int
		names []string
	}{
		{&sizes.tensor, []string{"--tensor-parallel-size", "-tp"}},
		{&sizes.pipeline, []string{"--pipeline-parallel-size", "-pp"}},
		{&sizes.data, []string{"--data-parallel-size", "-dp"}},
	} {
		text, given := args.Value(size.names...)
		if !given {
			continue
		}
		switch n, err := strconv.Atoi(expanded(text, s.Env)); {
		case err == nil && n >= 1 && n <= maxSize:
			*size.into = n
		case strings.ContainsAny(text, "$`"):
			sizes.unknown = append(sizes.unknown, size.names[0]+" "+text)
		default:
			return sizes, invalid("argument %s: %q is not a number from 1 on", size.names[0], text)
		}
	}
	return sizes, nil
}

// variable is a value that is one variable, as a shell or the kubelet spells it.
var variable = regexp.MustCompile(`^\$(?:(\w+)|\{(\w+)\}|\((\w+)\))$`)

// expanded is a value with the variable that it is, where the container says that.
func expanded(text string, env []corev1.EnvVar) string {
	text = strings.Trim(text, `"'`)
	found := variable.FindStringSubmatch(text)
	if found == nil {
		return text
	}
	name := cmp.Or(found[1:]...)
	at := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == name })
	if at < 0 {
		return text
	}
	return env[at].Value
}

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, v1alpha1.ReasonValidationFailed, format, args...)
}
