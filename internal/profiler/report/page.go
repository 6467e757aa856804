package report

import (
	"fmt"
	"html/template"
	"strings"
	"text/tabwriter"
)

var page = template.Must(template.New("report").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1180px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.verdict { padding: .7rem 1rem; border-left: 4px solid #009e73; background: #f2faf7; } .verdict.missed { border-color: #d55e00; background: #fdf4ee; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; } th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #e6e6e6; vertical-align: top; }
th { font-weight: 600; } td.n, th.n { text-align: right; white-space: nowrap; } tr.chosen { background: #fdf4ee; } tr.missed { color: #777; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: #555; } dd { margin: 0; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; } .figures svg { border: 1px solid #e6e6e6; max-width: 100%; height: auto; }
.key b { font-weight: 400; white-space: nowrap; } .key span { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 1rem; vertical-align: -1px; }
</style>
</head>
<body>
<h1>{{.Title}}</h1>
<p class="verdict{{if not .Met}} missed{{end}}">{{.Verdict}}</p>
{{if .Remedies}}<h2>What would meet the goal</h2><ul>{{range .Remedies}}<li>{{.}}</li>{{end}}</ul>{{end}}
<dl>{{range .Facts}}<dt>{{.Name}}</dt><dd>{{.Value}}</dd>{{end}}</dl>
<h2>Candidates</h2>
<p class="key">Each mark is a configuration at the highest load that keeps the targets; hollow marks miss one. The line is the Pareto front.
<b><span style="background:{{.Colours.Aggregated}}"></span>aggregated</b>
<b><span style="background:{{.Colours.Disaggregated}}"></span>disaggregated</b>
<b><span style="background:{{.Colours.Chosen}}"></span>chosen, with its band</b>
<b><span style="background:{{.Colours.Target}}"></span>target</b></p>
<div class="figures">{{range .Figures}}{{.}}{{end}}</div>
<h2>Ranking</h2>
<table><thead><tr><th></th><th>configuration</th><th class="n">TTFT, ms</th><th class="n">ITL, ms</th><th class="n">tokens/s/GPU</th><th class="n">requests/s</th><th class="n">GPUs</th><th class="n">cost of 1M tokens</th><th>why</th></tr></thead><tbody>
{{range .Rows}}<tr class="{{if .Chosen}}chosen{{else if not .Met}}missed{{end}}"><td>{{.Mark}}</td><td>{{.Name}}</td><td class="n">{{.TTFT}}</td><td class="n">{{.ITL}}</td><td class="n">{{.Tokens}}</td><td class="n">{{.Rate}}</td><td class="n">{{.GPUs}}</td><td class="n">{{.Cost}}</td><td>{{.Why}}</td></tr>
{{end}}</tbody></table>
{{if .More}}<p>{{.More}} more are not shown.</p>{{end}}
{{if .Rejected}}<h2>Cannot run</h2>
<table><thead><tr><th>layout</th><th class="n">GPUs</th><th>why</th></tr></thead><tbody>
{{range .Rejected}}<tr><td>{{.Layout}}</td><td class="n">{{.Layout.GPUs}}</td><td>{{.Reason}}</td></tr>
{{end}}</tbody></table>{{end}}
{{if .Warnings}}<h2>Notes</h2><ul>{{range .Warnings}}<li>{{.}}</li>{{end}}</ul>{{end}}
</body>
</html>
`))

// HTML is the whole report in one file.
func (r Report) HTML() (string, error) {
	best := r.Outcome.Best()
	var figures []template.HTML
	for _, f := range r.Figures() {
		figures = append(figures, template.HTML(f.SVG)) //nolint:gosec // drawn by us, every label escaped
	}
	var b strings.Builder
	err := page.Execute(&b, map[string]any{
		"Title": r.Title, "Verdict": r.verdict(), "Met": best.Met(), "Remedies": r.Outcome.Remedies, "Facts": r.facts(), "Figures": figures,
		"Rows": r.table(), "More": max(0, len(r.Outcome.Candidates)-rows), "Rejected": r.Outcome.Rejected, "Warnings": r.Warnings,
		"Colours": map[string]template.CSS{"Aggregated": colourAggregated, "Disaggregated": colourDisaggregated, "Chosen": colourChosen, "Target": colourTarget},
	})
	if err != nil {
		return "", fmt.Errorf("write report: %w", err)
	}
	return b.String(), nil
}

// Text is the report for a terminal.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", r.Title, r.verdict())
	if len(r.Outcome.Remedies) > 0 {
		fmt.Fprintln(&b, "What would meet the goal:")
		for _, remedy := range r.Outcome.Remedies {
			fmt.Fprintf(&b, "  - %s\n", remedy)
		}
	}
	fmt.Fprintln(&b)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range r.facts() {
		fmt.Fprintf(w, "%s\t%s\n", f.Name, f.Value)
	}
	_ = w.Flush() // to memory
	fmt.Fprintln(&b)
	fmt.Fprintln(w, "\tCONFIGURATION\tTTFT MS\tITL MS\tTOKENS/S/GPU\tREQ/S\tGPUS\tCOST/1M\tWHY")
	for _, row := range r.table() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row.Mark, row.Name, row.TTFT, row.ITL, row.Tokens, row.Rate, row.GPUs, row.Cost, row.Why)
	}
	_ = w.Flush()
	if more := len(r.Outcome.Candidates) - rows; more > 0 {
		fmt.Fprintf(&b, "%d more are not shown.\n", more)
	}
	if len(r.Outcome.Rejected) > 0 {
		fmt.Fprintln(&b, "\nCannot run:")
		for _, x := range r.Outcome.Rejected {
			fmt.Fprintf(w, "  %s\t%s\n", x.Layout, x.Reason)
		}
		_ = w.Flush()
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "note: %s\n", warning)
	}
	return b.String()
}
