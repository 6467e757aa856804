package engine

import (
	"strconv"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// vllmSizes are the degrees of parallelism that a command line asks for.
type vllmSizes struct {
	tensor, pipeline, data int
}

// maxSize is more than any machine has; it keeps products small.
const maxSize = 1 << 16

func readSizes(s Spec) (sizes vllmSizes, err error) {
	args := arguments(graph.EngineVLLM, s.Command, s.Args)
	for _, size := range []struct {
		into  *int
		names []string
	}{
		{&sizes.tensor, []string{"--tensor-parallel-size", "-tp"}},
		{&sizes.pipeline, []string{"--pipeline-parallel-size", "-pp"}},
		{&sizes.data, []string{"--data-parallel-size", "-dp"}},
	} {
		if *size.into, err = readSize(args, s.Group, size.names...); err != nil {
			return sizes, err
		}
	}
	return sizes, nil
}

// readSize is 1 for a size that is not given. One that is only known when the
// pod runs is left to the engine, unless it decides how the engine spans nodes.
func readSize(args commandline.Args, group Group, names ...string) (int, error) {
	text, given := args.Value(names...)
	switch n, err := strconv.Atoi(text); {
	case !given:
		return 1, nil
	case err == nil && n >= 1 && n <= maxSize:
		return n, nil
	case !strings.Contains(text, "$"):
		return 0, invalid("argument %s: %q is not a number from 1 on", names[0], text)
	case group.Position == Alone:
		return 1, nil
	default:
		return 0, invalid("argument %s: %q is known only when the pod runs, but it decides how vLLM spans %d nodes: write the number", names[0], text, group.Nodes)
	}
}

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, v1alpha1.ReasonValidationFailed, format, args...)
}
