// Package report shows what a search found: figures, tables and the reasons, as
// one HTML file that needs nothing else, and as text for a terminal. It decides
// nothing.
package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
)

// Report is what is shown.
type Report struct {
	Title   string
	Model   string
	GPU     string
	Engine  string
	Goal    config.SLA
	Outcome *search.Outcome
	// Source says where the times come from, Price where the prices do.
	Source, Price string
	Warnings      []string
}

// rows is how many candidates the tables show.
const rows = 20

// drawn is how many candidates a figure shows: a report has to fit into a
// ConfigMap.
const drawn = 250

// Figure is a drawing.
type Figure struct{ Name, SVG string }

// Figures are the three ways to look at the candidates.
func (r Report) Figures() []Figure {
	best := r.Outcome.Best()
	ttft := func(c search.Candidate) float64 { return c.TTFT.Value }
	itl := func(c search.Candidate) float64 { return c.ITL.Value }
	tokens := func(c search.Candidate) float64 { return c.TokensPerGPU }
	perToken := r.scatter("Throughput against time between tokens", "time between tokens, ms", "output tokens a second and GPU", itl, tokens)
	perToken.targetX, perToken.lowX, perToken.highX = r.Goal.ITL, best.ITL.Low, best.ITL.High
	perFirst := r.scatter("Throughput against time to first token", "time to first token, ms", "output tokens a second and GPU", ttft, tokens)
	perFirst.targetX, perFirst.lowX, perFirst.highX = r.Goal.TTFT, best.TTFT.Low, best.TTFT.High
	latency := r.scatter("The two latencies", "time to first token, ms", "time between tokens, ms", ttft, itl)
	latency.targetX, latency.lowX, latency.highX = r.Goal.TTFT, best.TTFT.Low, best.TTFT.High
	latency.targetY, latency.lowY, latency.highY = r.Goal.ITL, best.ITL.Low, best.ITL.High
	return []Figure{{"throughput-itl", perToken.svg()}, {"throughput-ttft", perFirst.svg()}, {"latency", latency.svg()}}
}

func (r Report) scatter(title, x, y string, xOf, yOf func(search.Candidate) float64) *plot {
	p := &plot{title: title, x: x, y: y, logarithmic: true}
	front := r.Outcome.Front()
	for i, c := range shown(r.Outcome.Candidates, front) {
		m := mark{x: xOf(c), y: yOf(c), colour: colourAggregated, label: describe(c), muted: !c.Met()}
		if c.Mode == config.Disaggregated {
			m.colour = colourDisaggregated
		}
		if i == 0 {
			p.chosen = m
			continue
		}
		p.marks = append(p.marks, m)
	}
	// The candidates come best first; what is drawn last is seen.
	slices.Reverse(p.marks)
	for _, c := range front {
		p.front = append(p.front, mark{x: xOf(c), y: yOf(c)})
	}
	slices.SortFunc(p.front, func(a, b mark) int { return cmp.Compare(a.x, b.x) })
	p.front = staircase(p.front, y == "time between tokens, ms")
	return p
}

// shown are the best candidates, and those that the line of the front goes through.
func shown(ranked, front []search.Candidate) []search.Candidate {
	all := slices.Clone(ranked[:min(drawn, len(ranked))])
	for _, c := range front {
		if !slices.ContainsFunc(all, func(other search.Candidate) bool { return other.Name == c.Name }) {
			all = append(all, c)
		}
	}
	return all
}

// staircase keeps the marks of a front that are on the edge of this view: the
// front has three sides, and a drawing shows two.
func staircase(marks []mark, lower bool) []mark {
	var edge []mark
	for _, m := range marks {
		if len(edge) == 0 || lower && m.y < edge[len(edge)-1].y || !lower && m.y > edge[len(edge)-1].y {
			edge = append(edge, m)
		}
	}
	return edge
}

func describe(c search.Candidate) string {
	return fmt.Sprintf("%s: ttft %.4g ms, itl %.4g ms, %.4g tokens/s/GPU", c, c.TTFT.Value, c.ITL.Value, c.TokensPerGPU)
}

// verdict is the outcome in a sentence or two.
func (r Report) verdict() string {
	best := r.Outcome.Best()
	if best.Met() {
		return "All targets are met by " + best.String() + "."
	}
	return "No configuration meets the goal. The closest is " + best.String() + ": " + best.Missed() + "."
}

// row is a candidate in a table.
type row struct {
	Mark, Name, TTFT, ITL, Tokens, Rate, GPUs, Cost, Why string
	Chosen, Met                                          bool
}

func (r Report) table() []row {
	var all []row
	for i, c := range r.Outcome.Candidates[:min(rows, len(r.Outcome.Candidates))] {
		line := row{
			Name: c.String(), TTFT: bandText(c.TTFT), ITL: bandText(c.ITL), Tokens: fmt.Sprintf("%.0f", c.TokensPerGPU),
			Rate: fmt.Sprintf("%.3g", c.Rate), GPUs: fmt.Sprint(c.GPUs), Cost: cost(c), Why: c.Missed(), Chosen: i == 0, Met: c.Met(),
		}
		switch {
		case i == 0:
			line.Mark, line.Why = "chosen", cmp.Or(line.Why, r.why())
		case c.Measured:
			line.Mark = "measured"
		}
		if line.Why == "" {
			line.Why = r.lesser(c)
		}
		all = append(all, line)
	}
	return all
}

// why says by what the chosen one is the best.
func (r Report) why() string {
	p := r.Outcome.Problem
	switch {
	case p.Goal.RequestRate > 0:
		return "fewest GPUs for the rate"
	case p.Budget > 0:
		return "highest rate within the budget"
	default:
		return "most tokens per GPU"
	}
}

// lesser says why a candidate that meets the goal was not chosen.
func (r Report) lesser(c search.Candidate) string {
	best, p := r.Outcome.Best(), r.Outcome.Problem
	percent := func(a, b float64) float64 { return 100 * (a/b - 1) }
	switch {
	case best.Measured && !c.Measured:
		return "estimated, while the chosen one was measured"
	case p.Goal.RequestRate > 0 && c.GPUs > best.GPUs:
		return fmt.Sprintf("%d GPUs more", c.GPUs-best.GPUs)
	case p.Goal.RequestRate == 0 && p.Budget > 0 && c.Rate < best.Rate:
		return fmt.Sprintf("rate %.3g%% lower", -percent(c.Rate, best.Rate))
	case p.Goal.RequestRate == 0 && p.Budget == 0 && c.TokensPerGPU < best.TokensPerGPU:
		return fmt.Sprintf("%.3g%% fewer tokens per GPU", -percent(c.TokensPerGPU, best.TokensPerGPU))
	default:
		return "as good within 2%, but larger or less simple"
	}
}

func bandText(b search.Band) string {
	if b.Low == b.High {
		return fmt.Sprintf("%.4g", b.Value)
	}
	return fmt.Sprintf("%.4g (%.3g to %.3g)", b.Value, b.Low, b.High)
}

func cost(c search.Candidate) string {
	if c.CostPerMillion == 0 {
		return "-"
	}
	return fmt.Sprintf("$%.2f", c.CostPerMillion)
}

// fact is a line of the summary.
type fact struct{ Name, Value string }

func (r Report) facts() []fact {
	best, p := r.Outcome.Best(), r.Outcome.Problem
	all := []fact{
		{"Model", r.Model},
		{"Hardware", fmt.Sprintf("%s, %d a node, %d to %d for one engine", r.GPU, p.PerNode, p.MinGPUs, p.MaxGPUs)},
		{"Engine", r.Engine},
		{"Requests", fmt.Sprintf("%d tokens in, %d out", r.Goal.ISL, r.Goal.OSL)},
		{"Targets", r.targets()},
		{"Chosen", best.String()},
		{"Load", r.users(best)},
		{"Time to first token", bandText(best.TTFT) + " ms"},
		{"Time between tokens", bandText(best.ITL) + " ms"},
		{"Ranking", r.sure()},
		{"Throughput", fmt.Sprintf("%.0f output tokens a second and GPU, %.3g requests a second on %d GPUs", best.TokensPerGPU, best.Rate, best.GPUs)},
	}
	if m := best.Trial; best.Measured {
		all = append(all, fact{"Measured", fmt.Sprintf("%d users, %d requests: ttft %.4g ms, the model said %.4g; itl %.4g ms, the model said %.4g",
			m.Concurrency, m.Done, m.TTFT.Value, m.ModelTTFT, m.ITL.Value, m.ModelITL)})
	}
	if best.CostPerMillion > 0 {
		all = append(all, fact{"Cost", fmt.Sprintf("%s for a million output tokens (%s)", cost(best), r.Price)})
	}
	return append(all, fact{"Times are", r.Source})
}

// sure says how sure it is that the chosen one is a good one.
func (r Report) sure() string {
	c := r.Outcome.Certainty()
	text := fmt.Sprintf("among the best three of %d candidates with a chance of %.0f %%, the best with %.0f %%", c.Candidates, 100*c.Podium, 100*c.First)
	if p := r.Goal.Confidence; p > 0 {
		text += fmt.Sprintf("; chosen to keep the targets with %.0f %%", 100*p)
	}
	return text
}

// users says under which load the times hold.
func (r Report) users(c search.Candidate) string {
	each := "each engine"
	if c.Prefill != nil {
		each = "each decode engine"
	}
	if a := r.Goal.Arrival; a == perfmodel.Poisson {
		return fmt.Sprintf("%d requests at once on %s in the mean, coming at random; times are means", c.Decode.Concurrency, each)
	} else if a == perfmodel.Staggered {
		return fmt.Sprintf("%d users at once on %s, who ask again when answered, one after the other; times are means", c.Decode.Concurrency, each)
	}
	return fmt.Sprintf("%d users at once on %s, who ask again when answered; times are medians", c.Decode.Concurrency, each)
}

func (r Report) targets() string {
	text := fmt.Sprintf("ttft %.4g ms, itl %.4g ms", r.Goal.TTFT, r.Goal.ITL)
	if r.Goal.RequestRate > 0 {
		text += fmt.Sprintf(", %.4g requests a second", r.Goal.RequestRate)
	}
	if b := r.Outcome.Problem.Budget; b > 0 {
		text += fmt.Sprintf(", at most %d GPUs", b)
	}
	return text
}
