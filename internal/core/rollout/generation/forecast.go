package generation

import "slices"

// mostSteps bounds a forecast; a rollout of hundreds of replicas takes fewer.
const mostSteps = 10000

// Foresee plays a rollout to its end: whatever is started comes up, and whatever is told to
// go goes, once nothing is left to be told. It hands on each step with the world that it is
// taken in, and returns the last, which waits for nothing that is under way.
func Foresee(w World, each func(World, Step)) Step {
	for range mostSteps {
		step := Next(w)
		each(w, step)
		switch {
		case step.Action != Wait:
			w = w.After(step)
		case !w.underWay():
			return step
		default:
			w = w.arrived()
		}
	}
	return Step{Action: Wait, Phase: PhaseBlocked, Reason: ReasonNoPath}
}

// After is the world once a step was told, and nothing has come of it yet.
func (w World) After(step Step) World {
	switch step.Action {
	case Scale, Make:
		return w.told(step)
	case Delete:
		w.Generations = slices.DeleteFunc(slices.Clone(w.Generations), func(g Generation) bool { return g.ID == step.Generation })
		return w
	default:
		return w
	}
}

// told is the world after a step.
func (w World) told(step Step) World {
	role := slices.IndexFunc(w.Roles, func(r Role) bool { return r.Name == step.Role })
	if w.index(step.Generation) < 0 {
		w.Generations = append(slices.Clone(w.Generations), Generation{ID: step.Generation, Roles: make([]Replicas, len(w.Roles))})
	}
	w = w.changed(func(g ID, r int, n Replicas) Replicas {
		switch {
		case g == step.Generation && step.Action == Make:
			n.Want = w.Postponed().Unit()[r]
		case g == step.Generation && r == role:
			n.Want = step.Replicas
		}
		return n
	})
	return w
}

// arrived is the world once everything is as it was told to be.
func (w World) arrived() World {
	return w.changed(func(_ ID, _ int, n Replicas) Replicas {
		return Replicas{Want: n.Want, Exist: n.Want, Routable: n.Want, Absent: n.Absent}
	})
}

func (w World) changed(each func(g ID, r int, n Replicas) Replicas) World {
	generations := make([]Generation, len(w.Generations))
	for i, g := range w.Generations {
		generations[i] = Generation{ID: g.ID}
		for r, n := range g.Roles {
			generations[i].Roles = append(generations[i].Roles, each(g.ID, r, n))
		}
	}
	w.Generations = generations
	return w
}

// underWay reports whether something is starting or leaving.
func (w World) underWay() bool {
	return slices.ContainsFunc(w.Generations, func(g Generation) bool {
		return slices.ContainsFunc(g.Roles, func(r Replicas) bool { return r.Exist != r.Want || r.Routable != r.Want })
	})
}

// Wanted is what a role of a generation was told; nothing if that is not there.
func (w World) Wanted(id ID, role string) int {
	g := w.index(id)
	r := slices.IndexFunc(w.Roles, func(r Role) bool { return r.Name == role })
	if g < 0 || r < 0 {
		return 0
	}
	return w.Generations[g].Roles[r].Want
}

// Held are the replicas of a role in a generation that hold GPUs, those that leave too.
func (r Replicas) Held() int { return r.held() }
