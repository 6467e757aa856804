// Package role finds the services of a graph that a planner scales, the GPUs of their
// replicas and how long those take. It reads a profile's folder and decides nothing.
package role

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/original"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/pricing"
	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/config"
)

// Components are the services that matter.
type Components struct {
	Frontends []graph.Component
	// Scaled are nil where a role is none of this planner's.
	Scaled [decision.Roles]*graph.Component
	// Aggregated says that the decode role is that of workers which do both.
	Aggregated bool
}

// All are the frontends and the scaled ones.
func (c Components) All() []graph.Component {
	all := c.Frontends
	for _, s := range c.Scaled {
		if s != nil {
			all = append(slices.Clip(all), *s)
		}
	}
	return all
}

// Find is the components of a graph that a mode is about, or what is missing. Of a role
// there has to be one: it is not known how two would share the load.
func Find(all []graph.Component, mode config.Mode) (parts Components, missing string) {
	var found [decision.Roles][]graph.Component
	var both []graph.Component
	for _, c := range all {
		sub := graph.RoleOf(c.SubType)
		switch {
		case c.Role == graph.RoleFrontend || c.Type == "main":
			c.Role = graph.RoleFrontend
			parts.Frontends = append(parts.Frontends, c)
		case c.Role == graph.RolePrefill || c.Role.RunsEngine() && sub == graph.RolePrefill:
			found[decision.Prefill] = append(found[decision.Prefill], c)
		case c.Role == graph.RoleDecode || c.Role.RunsEngine() && sub == graph.RoleDecode:
			found[decision.Decode] = append(found[decision.Decode], c)
		case c.Role.RunsEngine():
			both = append(both, c)
		}
	}
	var wanted []decision.Role
	switch mode {
	case config.Aggregated:
		parts.Aggregated = true
		if len(both) > 0 {
			found[decision.Decode] = both
		}
		wanted = []decision.Role{decision.Decode}
	case config.PrefillOnly:
		wanted = []decision.Role{decision.Prefill}
	case config.DecodeOnly:
		wanted = []decision.Role{decision.Decode}
	default:
		wanted = []decision.Role{decision.Prefill, decision.Decode}
	}
	for _, role := range wanted {
		if n := len(found[role]); n != 1 {
			return parts, fmt.Sprintf("the graph has %d services of %s, and one is scaled", n, role)
		}
	}
	for _, role := range wanted {
		parts.Scaled[role] = &found[role][0]
	}
	return parts, ""
}

// GPUs are those of one replica of each role; a role that is not scaled has none.
// What is given counts more than what the graph says.
func (c Components) GPUs(given decision.Vector) decision.Vector {
	var each decision.Vector
	for role, one := range c.Scaled {
		switch {
		case one == nil:
		case given[role] > 0:
			each[role] = given[role]
		default:
			each[role] = max(1, one.Resources.GPUs*int(max(1, one.Nodes))) // engines without GPUs are counted too
		}
	}
	return each
}

// Prices are those of a GPU of each role. Replicas that ask for no GPU, of which nobody gives
// how many they have, cost nothing: they are counted as if they had one, which nobody pays for.
// A role that is not scaled is taken to be as the other.
func (c Components) Prices(told config.Config) pricing.Tags {
	var tags pricing.Tags
	var bare []string
	paid := false
	for role, one := range c.Scaled {
		tags[role] = price.Find(told.Price[role], c.kind(told, role))
		if one != nil && told.GPUs[role] <= 0 && one.Resources.GPUs <= 0 {
			tags[role] = price.Tag{Free: true}
			bare = append(bare, decision.Role(role).String())
		} else if one != nil {
			paid = true
		}
	}
	switch {
	case len(bare) > 0 && !paid:
		return pricing.Both(price.Tag{Unknown: fmt.Sprintf("replicas of %s ask for no GPU", strings.Join(bare, " and "))})
	case c.Scaled[decision.Prefill] == nil:
		return pricing.Both(tags[decision.Decode])
	case c.Scaled[decision.Decode] == nil:
		return pricing.Both(tags[decision.Prefill])
	}
	return tags
}

// labelProduct is the label of nodes that tells what GPUs they have.
const labelProduct = "nvidia.com/gpu.product"

// Kinds are the GPUs that replicas of each role have; empty where nobody says, or where nobody
// knows what a node's label means.
func (c Components) Kinds(told config.Config) [decision.Roles]string {
	var kinds [decision.Roles]string
	for role := range kinds {
		kinds[role] = c.kind(told, role)
		if _, err := perfmodel.Default().GPU(kinds[role]); err != nil {
			kinds[role] = told.GPU[role]
		}
	}
	return kinds
}

// kind is the GPU that replicas of a role have: as the planner is told, or as the label of the
// nodes that its pods ask for; empty where nobody says.
func (c Components) kind(told config.Config, role int) string {
	if told.GPU[role] != "" || c.Scaled[role] == nil || c.Scaled[role].Pod == nil {
		return told.GPU[role]
	}
	return c.Scaled[role].Pod.NodeSelector[labelProduct]
}

// Timing is how long replicas take, and who says so.
type Timing struct {
	Model capacity.Model
	// Profile is there for the original's policy alone.
	Profile *original.Profile
	GPUs    decision.Vector
	By      string
	// engines are the replicas of both roles as the performance model has them; nil where it
	// knows nothing of a handover between them.
	engines [decision.Roles]*perfmodel.Estimator
}

// NewTiming takes the profile that a planner is pointed at; without one the performance
// model of what workers are started with; and where that knows neither, the published
// profile of a model of 8 billion parameters, which what requests get then corrects.
func NewTiming(c config.Config, parts Components) (*Timing, error) {
	t := &Timing{GPUs: parts.GPUs(c.GPUs)}
	if parts.handOver() {
		t.engines, _, _ = engines(c, parts, t.GPUs) // without them a handover is not known
	}
	profile, err := capacity.ReadProfile(os.DirFS(c.Profile))
	switch {
	case err == nil:
		if t.Model, err = profile.Model(); err != nil {
			return nil, fmt.Errorf("profile %s: %w", c.Profile, err)
		}
		t.By = "the profile that it was given"
		if c.Policy == config.Original {
			if t.Profile, err = original.NewProfile(profile); err != nil {
				return nil, fmt.Errorf("profile %s: %w", c.Profile, err)
			}
		}
		return t, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("profile %s: %w", c.Profile, err)
	case c.Policy == config.Original:
		return nil, fmt.Errorf("profile %s: the original decides by one: %w", c.Profile, err)
	}
	t.Model, t.By = Estimate(c, parts)
	return t, nil
}

// handOver says that prompts go from replicas of one role to those of the other, by engines
// that are known: of a mock engine that is timed by a profile nobody knows how it hands over.
func (c Components) handOver() bool {
	return !c.Aggregated && !slices.ContainsFunc(c.Scaled[:], func(one *graph.Component) bool { return one == nil || one.Engine == graph.EngineNone })
}

// slowest is by how much a handover is taken to be slower than the performance model says,
// at most: how fast prompts are says little about a link.
const slowest = 2

// Handover is how many seconds a computed prompt of so many tokens takes from a prefill
// replica to a token of one of decode; 0 where nobody knows. Of replicas that compute prompts
// more slowly, or faster, than the performance model says, handovers are so too. It comes
// while a step runs, and its token with the next one.
func (t *Timing) Handover(tokens float64) float64 {
	prefill, decode := t.engines[decision.Prefill], t.engines[decision.Decode]
	if prefill == nil || decode == nil || !(tokens > 0) {
		return 0
	}
	n := int(math.Ceil(min(tokens, float64(decode.Setup().Model.Context))))
	slower := t.Model.Prefill(float64(n)) / prefill.FirstToken(n, 0).Value.Seconds()
	const steps = 1.5
	return min(slower, slowest)*decode.Transfer(n).Value.Seconds() + steps*t.Model.Token(1, float64(n))
}

// Estimate times replicas without a profile, and says by what.
func Estimate(c config.Config, parts Components) (model capacity.Model, by string) {
	model, by, err := estimated(c, parts, parts.GPUs(c.GPUs))
	if err != nil {
		return capacity.H200(), fmt.Sprintf("the published profile of 8 billion parameters on one H200 (%v)", err)
	}
	return model, by
}

// assumed is the GPU that replicas are timed by where nobody says which they have.
const assumed = "h200_sxm"

// estimated is the performance model of the engines.
func estimated(c config.Config, parts Components, gpus decision.Vector) (capacity.Model, string, error) {
	both, name, err := engines(c, parts, gpus)
	if err != nil {
		return nil, "", err
	}
	model, err := capacity.FromEstimators(both[decision.Prefill], both[decision.Decode])
	prefill, decode := both[decision.Prefill].Setup().GPU.Name, both[decision.Decode].Setup().GPU.Name
	if prefill == decode {
		return model, fmt.Sprintf("the performance model of %s on %s", name, decode), err
	}
	return model, fmt.Sprintf("the performance model of %s on %s for prefill and %s for decode", name, prefill, decode), err
}

// engines are the replicas of both roles as the performance model has them, and the model that
// they serve. A role that is not scaled is taken to be as the other.
func engines(c config.Config, parts Components, gpus decision.Vector) (both [decision.Roles]*perfmodel.Estimator, name string, err error) {
	catalog, kinds := perfmodel.Default(), parts.Kinds(c)
	name = c.Model
	for role, component := range parts.Scaled {
		if component == nil {
			continue
		}
		gpu, err := catalog.GPU(cmp.Or(kinds[role], assumed))
		if err != nil {
			return both, "", err
		}
		setup := perfmodel.Setup{GPU: gpu, Engine: perfmodel.VLLM, Parallel: perfmodel.Parallel{TP: max(1, gpus[role])}, Pool: !parts.Aggregated}
		if component.Engine != graph.EngineNone {
			setup.Engine = perfmodel.Engine(component.Engine)
		}
		if name == "" {
			name = served(*component)
		}
		if setup.Model, err = catalog.Model(name); err != nil {
			return both, "", err
		}
		if both[role], err = catalog.Estimator(setup); err != nil {
			return both, "", err
		}
	}
	for role, other := range map[decision.Role]decision.Role{decision.Prefill: decision.Decode, decision.Decode: decision.Prefill} {
		if both[role] == nil {
			both[role] = both[other]
		}
	}
	if both[decision.Prefill] == nil {
		return both, "", errors.New("no service is scaled")
	}
	return both, name, nil
}

// served is the model that a worker is started with.
func served(c graph.Component) string {
	main := c.MainContainer()
	words := strings.Fields(strings.Join(append(append([]string{}, main.Command...), main.Args...), " "))
	name, _ := commandline.NewLooseArgs(words).Value("--model", "--model-path", "--model-name")
	return strings.Trim(name, `"'`)
}
