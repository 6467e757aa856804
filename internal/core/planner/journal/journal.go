// Package journal says in words what was decided and why, and keeps the last
// decisions. It decides nothing.
package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/pricing"
	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
)

// Kept is how many decisions are.
const Kept = 200

// PlanLimit is the most bytes of a record in a graph's annotation.
const PlanLimit = 2048

// Record is one decision that differs from the one before.
type Record struct {
	At    time.Time `json:"at"`
	Graph string    `json:"graph,omitempty"`
	// Policy decided; Advisory says that nothing was written.
	Policy   string          `json:"policy,omitempty"`
	Advisory bool            `json:"advisory,omitempty"`
	Reason   decision.Reason `json:"reason"`
	From     Replicas        `json:"from"`
	To       Replicas        `json:"to"`
	GPUs     int             `json:"gpus"`
	// Cost is there where the price of a GPU is known; Unpriced says why it is not.
	Cost     *Cost  `json:"cost,omitempty"`
	Unpriced string `json:"unpriced,omitempty"`
	// Limited is what stands between the need and the replicas.
	Limited string `json:"limited,omitempty"`
	// Failed is why nothing could be written.
	Failed string `json:"failed,omitempty"`
	// Words explain it, the decision itself first.
	Words []string `json:"words,omitempty"`
}

// Replicas are those of each role.
type Replicas struct {
	Prefill int `json:"prefill"`
	Decode  int `json:"decode"`
}

// Cost is dollars an hour.
type Cost struct {
	// From and To are those of the replicas before and after.
	From float64 `json:"from"`
	To   float64 `json:"to"`
	// Headroom is what of To the requests that come now do not need; nil where that is
	// not known.
	Headroom *float64 `json:"headroom,omitempty"`
	// GPU is the price of one, By who says so; where those of the roles differ Roles has them
	// instead.
	GPU   float64          `json:"gpu,omitempty"`
	By    string           `json:"by,omitempty"`
	Roles map[string]Price `json:"roles,omitempty"`
}

// Price is that of a GPU and hour, and who says so.
type Price struct {
	GPU float64 `json:"gpu"`
	By  string  `json:"by"`
}

func of(v decision.Vector) Replicas {
	return Replicas{Prefill: v[decision.Prefill], Decode: v[decision.Decode]}
}

// Context is what a decision is told with.
type Context struct {
	At      time.Time
	Graph   string
	Policy  string
	Config  decision.Config
	Seen    decision.Snapshot
	Startup time.Duration
	// Timing says where the times of replicas come from.
	Timing   string
	Advisory bool
	// Prices are those of a GPU of each role, and Needed what the requests that come now need
	// alone; nil where nobody knows.
	Prices pricing.Tags
	// Caches are the shares of caches of keys and values in use, of roles whose engines tell.
	Caches map[string]float64
	Needed *decision.Vector
}

// Tell is a decision in words.
func Tell(c Context, d decision.Decision) Record {
	from := decision.Vector{c.Seen.Roles[decision.Prefill].Wanted, c.Seen.Roles[decision.Decode].Wanted}
	r := Record{
		At: c.At.UTC().Truncate(time.Second), Graph: c.Graph, Policy: c.Policy, Advisory: c.Advisory, Reason: d.Reason,
		From: of(from), To: of(d.Replicas), GPUs: d.Replicas.GPUs(c.Config.GPUs), Limited: d.Limited,
	}
	r.Cost, r.Unpriced = c.cost(from, d.Replicas)
	say := func(format string, args ...any) { r.Words = append(r.Words, fmt.Sprintf(format, args...)) }
	budget := "no budget"
	if c.Config.Budget > 0 {
		budget = fmt.Sprintf("budget %d", c.Config.Budget)
	}
	if r.Cost != nil {
		budget = arrow(price.Rate(r.Cost.From), price.Rate(r.Cost.To)) + ", " + budget
	}
	say("prefill %s, decode %s (%s GPUs, %s): %s", arrow(from[decision.Prefill], d.Replicas[decision.Prefill]),
		arrow(from[decision.Decode], d.Replicas[decision.Decode]), arrow(from.GPUs(c.Config.GPUs), r.GPUs), budget, d.Reason)
	if d.Reason == decision.Blind {
		say("nothing was seen for %d ticks (%s): what there is is kept", d.BlindFor, cmp.Or(c.Seen.Failed, "a number that is none"))
		return r
	}
	lost := ""
	if d.Forecast.Loss > 0 {
		lost = fmt.Sprintf("; its error was %.0f %%", 100*d.Forecast.Loss)
	}
	say("arrivals %.1f/s, expected %.1f/s within %s (%s%s)", d.Forecast.Level, d.Forecast.Rate, d.Horizon.Round(time.Second), d.Forecast.Way, lost)
	if d.Even >= 0.5 && c.Config.GPUs[decision.Prefill] > 0 {
		say("they come at even distances: of the waits of requests that come by chance %.0f %% are planned with", 100*(1-d.Even))
	}
	for role := range decision.Role(decision.Roles) {
		if c.Config.GPUs[role] > 0 {
			say("%s", need(role, d.Roles[role]))
		}
	}
	for _, role := range slices.Sorted(maps.Keys(c.Caches)) {
		say("caches of %s are %.0f %% full", role, 100*c.Caches[role])
	}
	for _, x := range d.Clamps {
		say("%s: prefill %d, decode %d become prefill %d, decode %d", x.By,
			x.From[decision.Prefill], x.From[decision.Decode], x.To[decision.Prefill], x.To[decision.Decode])
	}
	if d.Limited != "" {
		say("limited: %s", d.Limited)
	}
	say("%s%s", c.Prices, headroom(r.Cost))
	for role := range decision.Role(decision.Roles) {
		t := d.Roles[role]
		if c.Config.GPUs[role] > 0 && t.ShrinksAt > c.Seen.Now {
			say("next: %s shrinks no earlier than in %s (a need must be gone for %s)", role, (t.ShrinksAt - c.Seen.Now).Round(time.Second), t.Pause.Round(time.Second))
		}
	}
	if c.Timing != "" {
		say("replicas are timed by %s", c.Timing)
	}
	return r
}

// cost is what replicas cost before and after, or why nobody knows.
func (c Context) cost(from, to decision.Vector) (cost *Cost, unpriced string) {
	if !c.Prices.Known() {
		return nil, c.Prices.Why()
	}
	hour := func(v decision.Vector) float64 { return c.Prices.Hour(v, c.Config.GPUs) }
	cost = &Cost{From: hour(from), To: hour(to)}
	if tag, one := c.Prices.Common(); one {
		cost.GPU, cost.By = tag.Hour, tag.By
	} else {
		cost.Roles = map[string]Price{}
		for role, tag := range c.Prices {
			cost.Roles[decision.Role(role).String()] = Price{GPU: tag.Hour, By: tag.By}
		}
	}
	if c.Needed != nil {
		var more decision.Vector
		for role := range decision.Roles {
			more[role] = max(0, to[role]-c.Needed[role])
		}
		cost.Headroom = new(hour(more))
	}
	return cost, ""
}

// headroom is what of a cost is so, in words; empty where that is not known.
func headroom(c *Cost) string {
	if c == nil || c.Headroom == nil {
		return ""
	}
	return fmt.Sprintf("; of the sum %s is more than what comes now needs", price.Rate(*c.Headroom))
}

func arrow[T comparable](from, to T) string {
	if from == to {
		return fmt.Sprint(to)
	}
	return fmt.Sprintf("%v → %v", from, to)
}

func need(role decision.Role, t decision.Term) string {
	why := string(t.Binding)
	switch {
	case t.Binding == decision.ByWait && t.Shorter > t.Wait:
		why = fmt.Sprintf("%s: a wait of %s, %s at one less", why, t.Wait.Round(time.Millisecond), wait(t.Shorter))
	case t.Batch > 0 && (t.Binding == decision.ByToken || t.Binding == decision.ByCache):
		why = fmt.Sprintf("%s: %.0f sequences a replica", why, math.Floor(t.Batch))
	case t.Binding == decision.ByBacklog:
		why = fmt.Sprintf("%s: arrivals alone need %d", why, t.Need)
	}
	needs := max(t.Need, t.Backlog)
	text := fmt.Sprintf("%s needs %d (%s)", role, needs, why)
	if t.Binding == decision.ByFloor {
		text = fmt.Sprintf("%s needs no more than its floor", role)
	} else if t.Target <= needs {
		return text
	}
	return fmt.Sprintf("%s, and is to have %d for now", text, t.Target)
}

// wait is a time, or that there is no end of it.
func wait(d time.Duration) string {
	if d >= 30*time.Minute {
		return "without end"
	}
	return d.Round(time.Millisecond).String()
}

// unseen is after how many ticks a graph is told that its planner sees nothing: one that
// does not answer once is nobody's trouble.
const unseen = 3

// Tells reports whether a graph has to be told of a decision that changes nothing: that
// its planner sees nothing, or sees again. The plan is the one that the graph keeps.
func Tells(d decision.Decision, plan string) bool {
	said := Unseen(plan) != ""
	return d.BlindFor >= unseen && !said || d.Reason != decision.Blind && said
}

// Unseen is why a planner sees nothing, by the plan that its graph keeps; empty if it
// sees, or never said.
func Unseen(plan string) string {
	var r Record
	if len(plan) > PlanLimit || json.Unmarshal([]byte(plan), &r) != nil || r.Reason != decision.Blind {
		return ""
	}
	return strings.Join(r.Words[min(1, len(r.Words)):], "; ")
}

// Plan is a record as a graph keeps it: words go before the limit does.
func (r Record) Plan() string {
	for {
		text, err := json.Marshal(r)
		if err != nil {
			return "" // numbers and text alone
		}
		if len(text) <= PlanLimit || len(r.Words) == 0 {
			return string(text)
		}
		r.Words = r.Words[:len(r.Words)-1]
	}
}

// Journal are the last decisions, the newest last. The zero value has none.
type Journal struct {
	records []Record
	last    Record // kept or not
}

// Add keeps a record if it tells anything that the last one did not: another number,
// another reason for it, or a write that failed. An adviser, whose decisions nobody writes,
// decides the same at every tick.
func (j Journal) Add(r Record) (Journal, bool) {
	last := j.last
	j.last = r
	if len(j.records) > 0 && last.Reason == r.Reason && (last.Limited == "") == (r.Limited == "") && last.From == r.From && last.To == r.To && last.Failed == r.Failed {
		return j, false
	}
	j.records = append(slices.Clone(j.records[max(0, len(j.records)-Kept+1):]), r)
	return j, true
}

// Records are those that are kept, the newest last.
func (j Journal) Records() []Record { return slices.Clone(j.records) }
