package graph

import corev1 "k8s.io/api/core/v1"

// PlannerRules are the operator's settings of planners.
type PlannerRules struct {
	// Image is that of our planner; without one no other is replaced.
	Image string
	// Always puts it in place of every planner, whether a graph asks for it or not.
	Always bool
}

// plannerProgram is how the image starts our planner.
const plannerProgram = "/dynamo-planner"

// planNatively puts our planner in place of the graph's own. It takes the same
// arguments, environment and files, so only image and command are others.
func (g *Graph) planNatively(image string) {
	if image == "" {
		return
	}
	for i := range g.Components {
		c := &g.Components[i]
		if c.Role != RolePlanner {
			continue
		}
		main := &corev1.Container{}
		if c.Main != nil {
			main = c.Main.DeepCopy() // the user's object stays as it is
		}
		main.Image, main.Command = image, []string{plannerProgram}
		c.Main, c.Native = main, true
	}
}
