package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// launchable checks that an engine can be launched as the component asks for,
// by the same code that will launch it.
func launchable(s *v1alpha1.SharedSpec, framework v1alpha1.BackendFramework, at *field.Path) field.ErrorList {
	c, readable := read(s, framework)
	if !readable || !c.Role.RunsEngine() {
		return nil
	}
	args := at.Child("extraPodSpec", "mainContainer", "args")
	command, words := commandOf(c)
	switch {
	case c.Multinode() && len(words) == 0 && slices.Equal(command, engine.Shell()):
		return field.ErrorList{field.Required(args, "without a command or arguments nothing runs on the nodes")}
	case c.Multinode() && c.Engine == graph.EngineTRTLLM && c.Resources.GPUs == 0 && len(c.Devices) == 0:
		return field.ErrorList{field.Required(at.Child("resources", "limits", "gpu"), "TensorRT-LLM starts a process for each GPU of the nodes")}
	}
	if _, err := launch(c); err != nil {
		return field.ErrorList{field.Invalid(args, strings.Join(slices.Concat(command, words), " "), err.Error())}
	}
	return nil
}

// read reads a component as the operator does; false for one whose quantities
// cannot be read or whose groups are too large, which other rules say.
func read(s *v1alpha1.SharedSpec, framework v1alpha1.BackendFramework) (graph.Component, bool) {
	g, err := graph.FromComponentDeployment(&v1alpha1.DynamoComponentDeployment{
		Spec: v1alpha1.DynamoComponentDeploymentSpec{BackendFramework: framework, SharedSpec: *s},
	}, graph.Defaults{})
	if err != nil || g.Components[0].Nodes > maxGroup {
		return graph.Component{}, false
	}
	return g.Components[0], true
}

func commandOf(c graph.Component) (command, args []string) {
	command = engine.Shell()
	if c.Main == nil {
		return command, nil
	}
	if len(c.Main.Command) > 0 {
		command = c.Main.Command
	}
	return command, c.Main.Args
}

// launch asks the engine for its leader's launch; addresses do not matter.
func launch(c graph.Component) (engine.Container, error) {
	group := engine.Group{Nodes: int(c.Nodes), Addresses: engine.Addresses{
		WorkerShell: func(int) string { return "" },
		RankTimes:   func(int) string { return "" },
	}}
	if c.Multinode() {
		group.Position = engine.Leader
	}
	command, args := commandOf(c)
	gpus := c.Resources.GPUs
	if gpus == 0 && len(c.Devices) > 0 {
		gpus = 1 // the cluster knows what claims give, and any number tells whether it can be launched
	}
	return engine.Launch(c.Engine, engine.Spec{Command: command, Args: args, Env: envOf(c), GPUs: gpus, Group: group})
}

// envOf are the user's variables, those that win first.
func envOf(c graph.Component) []corev1.EnvVar {
	if c.Main == nil {
		return c.Env
	}
	return slices.Concat(c.Env, c.Main.Env)
}
