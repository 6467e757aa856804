package engine

import (
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Model is the name under which an engine is told to serve its model; empty where its
// command line does not say, or only a shell or the container can tell.
func Model(engine graph.Engine, command, args []string) string {
	line := commandline.NewLooseArgs(strings.Fields(strings.Join(slices.Concat(command, args), " ")))
	if launches[engine] != nil {
		line = arguments(engine, command, args)
	}
	for _, flags := range [][]string{{"--served-model-name", "--model-name"}, {"--model", "--model-path"}} {
		if name, said := line.Value(flags...); said {
			if strings.ContainsAny(name, "$`") {
				return ""
			}
			return name
		}
	}
	return ""
}
