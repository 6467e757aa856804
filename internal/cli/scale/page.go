package scale

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/simulation"
)

// colours are those of policies, told apart by colour-blind readers too.
var colours = map[simulation.Name]string{
	simulation.PolicyNative: "#d55e00", simulation.PolicyOriginal: "#0072b2", simulation.PolicyHPA: "#e69f00",
	simulation.PolicyFixed: "#999999", simulation.PolicyClairvoyant: "#009e73",
}

var layout = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Policies of scaling: {{.Title}}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1180px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-size: .87rem; } th, td { text-align: right; padding: .3rem .8rem; border-bottom: 1px solid #e6e6e6; } th:first-child, td:first-child { text-align: left; }
svg { display: block; border: 1px solid #e6e6e6; max-width: 100%; height: auto; margin: .5rem 0; }
.key span { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 0; vertical-align: -1px; }
</style>
</head>
<body>
<h1>Policies of scaling: {{.Title}}</h1>
{{range .Sections}}<h2>Starts of {{.Startup}}</h2>
<table><thead><tr><th>policy</th><th>SLO %</th><th>TTFT %</th><th>ITL %</th><th>GPU-hours</th><th>cost</th><th>peak</th><th>changes</th><th></th></tr></thead><tbody>
{{range .Rows}}<tr><td class="key"><span style="background:{{.Colour}}"></span>{{.Policy}}</td><td>{{.SLO}}</td><td>{{.First}}</td><td>{{.Token}}</td><td>{{.Hours}}</td><td>{{.Cost}}</td><td>{{.Peak}}</td><td>{{.Changes}}</td><td>{{.Note}}</td></tr>
{{end}}</tbody></table>
<p>{{.Price}}.</p>
{{range .Charts}}{{.}}{{end}}
{{end}}</body>
</html>
`))

type row struct {
	Policy, SLO, First, Token, Hours, Cost, Note string
	Colour                                       template.CSS
	Peak, Changes                                int
}

// page is all curves in one file, without a script and without a request to anybody.
func page(title string, sections []Section) (string, error) {
	type part struct {
		Startup, Price string
		Rows           []row
		Charts         []template.HTML
	}
	var parts []part
	for _, s := range sections {
		p := part{Startup: s.Startup.String(), Price: s.Price.String()}
		for _, x := range s.Played {
			p.Rows = append(p.Rows, row{
				Policy: string(x.Policy), SLO: fmt.Sprintf("%.1f", 100*x.Met), First: fmt.Sprintf("%.1f", 100*x.MetFirst), Token: fmt.Sprintf("%.1f", 100*x.MetToken),
				Hours: fmt.Sprintf("%.2f", x.GPUHours), Cost: s.Price.Hours(x.GPUHours), Note: x.Note, Colour: template.CSS(colours[x.Policy]), Peak: x.Peak, Changes: x.Changes, //nolint:gosec // a constant
			})
		}
		for _, c := range charts(s) {
			p.Charts = append(p.Charts, template.HTML(c)) //nolint:gosec // drawn by us of numbers and names that we chose
		}
		parts = append(parts, p)
	}
	var b strings.Builder
	if err := layout.Execute(&b, map[string]any{"Title": title, "Sections": parts}); err != nil {
		return "", fmt.Errorf("write the page: %w", err)
	}
	return b.String(), nil
}

// curve is one line of a chart.
type curve struct {
	name, colour string
	dashed       bool
	values       []float64
}

func charts(s Section) []string {
	if len(s.Played) == 0 {
		return nil
	}
	of := func(value func(simulation.Count) float64) []curve {
		var all []curve
		for _, p := range s.Played {
			all = append(all, curve{name: string(p.Policy), colour: colours[p.Policy], values: thin(p.Slots, value)})
		}
		return all
	}
	arrivals := []curve{{name: "arrivals", colour: "#222222", values: thin(s.Played[0].Slots, func(c simulation.Count) float64 { return float64(c.Began) / simulation.Slot })}}
	both := of(func(c simulation.Count) float64 { return float64(c.Ready[0] + c.Ready[1]) })
	for _, w := range of(func(c simulation.Count) float64 { return float64(c.Wanted[0] + c.Wanted[1]) }) {
		w.dashed = true
		both = append(both, w)
	}
	hours := of(func(c simulation.Count) float64 { return float64(c.GPUs) })
	for i := range hours {
		step := s.Played[i].Length / math.Max(1, float64(len(hours[i].values))) / 3600
		sum := 0.0
		for j, v := range hours[i].values {
			sum += v * step
			hours[i].values[j] = sum
		}
	}
	met := of(func(c simulation.Count) float64 {
		if c.Ended == 0 {
			return 100
		}
		return 100 * float64(c.Met) / float64(c.Ended)
	})
	length := s.Played[0].Length
	return []string{
		chart("Arrivals, requests a second", length, arrivals),
		chart("Replicas ready, and wanted (dashed)", length, both),
		chart("Requests within the targets, %", length, met),
		chart("GPU-hours so far", length, hours),
	}
}

// points is how many a curve has at most.
const points = 400

// thin is the mean of a value over as many slots as make a point.
func thin(slots []simulation.Count, value func(simulation.Count) float64) []float64 {
	each := (len(slots) + points - 1) / points
	var all []float64
	for from := 0; from < len(slots); from += each {
		to := min(len(slots), from+each)
		sum := 0.0
		for i := from; i < to; i++ {
			sum += value(slots[i])
		}
		all = append(all, sum/float64(to-from))
	}
	return all
}

func chart(title string, seconds float64, curves []curve) string {
	const width, height, left, right, top, bottom = 1100.0, 220.0, 50.0, 10.0, 24.0, 24.0
	highest := 1e-9
	for _, c := range curves {
		for _, v := range c.values {
			highest = max(highest, v)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s" font-family="system-ui, sans-serif" font-size="11">`, width, height, width, height, title)
	fmt.Fprintf(&b, `<text x="%.0f" y="15" font-weight="600">%s</text>`, left, title)
	for i := range 5 {
		v := highest * float64(i) / 4
		y := height - bottom - (height-top-bottom)*float64(i)/4
		fmt.Fprintf(&b, `<line x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f" stroke="#eee"/><text x="%.0f" y="%.1f" text-anchor="end">%.3g</text>`, left, width-right, y, y, left-6, y+4, v)
		at := seconds * float64(i) / 4
		fmt.Fprintf(&b, `<text x="%.1f" y="%.0f" text-anchor="middle">%.0f min</text>`, left+(width-left-right)*float64(i)/4, height-6, at/60)
	}
	for _, c := range curves {
		dash := ""
		if c.dashed {
			dash = ` stroke-dasharray="3 3" stroke-opacity="0.6"`
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.3"%s points="`, c.colour, dash)
		for i, v := range c.values {
			x := left + (width-left-right)*float64(i)/math.Max(1, float64(len(c.values)-1))
			fmt.Fprintf(&b, "%.1f,%.1f ", x, height-bottom-(height-top-bottom)*v/highest)
		}
		fmt.Fprintf(&b, `"><title>%s</title></polyline>`, c.name)
	}
	b.WriteString("</svg>")
	return b.String()
}
