package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// The colours of the figures. A test looks for them in a screenshot.
const (
	colourAggregated    = "#0072b2"
	colourDisaggregated = "#e69f00"
	colourChosen        = "#d55e00"
	colourTarget        = "#009e73"
)

// mark is one point of a figure.
type mark struct {
	x, y   float64
	colour string
	label  string
	// muted marks miss a target.
	muted bool
}

// plot is a scatter plot with what belongs to it.
type plot struct {
	title, x, y string
	marks       []mark
	// front is joined by a line.
	front []mark
	// chosen is the large one, with its band.
	chosen               mark
	lowX, highX          float64
	lowY, highY          float64
	targetX, targetY     float64 // zero draws none
	logarithmic          bool    // both axes
	width, height        int
	left, right, up, low int // margins
}

func (p *plot) size() {
	p.width, p.height, p.left, p.right, p.up, p.low = 560, 400, 72, 20, 36, 52
}

// axis maps values to places.
type axis struct {
	min, max   float64
	from, to   float64
	logarithms bool
}

func (a axis) at(v float64) float64 {
	low, high := a.min, a.max
	if a.logarithms {
		v, low, high = math.Log10(math.Max(v, a.min)), math.Log10(a.min), math.Log10(a.max)
	}
	if high == low {
		return (a.from + a.to) / 2
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// ticks are round values along the axis.
func (a axis) ticks() []float64 {
	var all []float64
	if a.logarithms {
		if all = a.decades(1, 2, 5); len(all) < 3 {
			all = a.decades(1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
		}
		return all
	}
	span := a.max - a.min
	step := math.Pow(10, math.Floor(math.Log10(span/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if span/(step*m) <= 7 {
			step *= m
			break
		}
	}
	for v := math.Ceil(a.min/step) * step; v <= a.max+step/1e6; v += step {
		all = append(all, v)
	}
	return all
}

// decades are the multiples of powers of ten on a logarithmic axis.
func (a axis) decades(multiples ...float64) []float64 {
	var all []float64
	for decade := math.Floor(math.Log10(a.min)); decade <= math.Ceil(math.Log10(a.max)); decade++ {
		for _, m := range multiples {
			// Rounded: 3 times a tenth is not three tenths.
			v, _ := strconv.ParseFloat(fmt.Sprintf("%.4g", m*math.Pow(10, decade)), 64)
			if v >= a.min && v <= a.max {
				all = append(all, v)
			}
		}
	}
	return all
}

// around is the range of values with some air.
func around(values []float64, logarithmic bool) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 0) {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	if low > high {
		return 1, 10
	}
	if logarithmic {
		return low / 1.25, high * 1.25
	}
	return 0, high * 1.08
}

func (p *plot) axes() (x, y axis) {
	var xs, ys []float64
	for _, m := range append(append([]mark{p.chosen}, p.marks...), p.front...) {
		xs, ys = append(xs, m.x), append(ys, m.y)
	}
	xs, ys = append(xs, p.targetX, p.lowX, p.highX), append(ys, p.targetY, p.lowY, p.highY)
	x = axis{from: float64(p.left), to: float64(p.width - p.right), logarithms: p.logarithmic}
	y = axis{from: float64(p.height - p.low), to: float64(p.up), logarithms: p.logarithmic}
	x.min, x.max = around(xs, p.logarithmic)
	y.min, y.max = around(ys, p.logarithmic)
	return x, y
}

// svg draws the plot.
func (p *plot) svg() string {
	p.size()
	x, y := p.axes()
	var b strings.Builder
	draw := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	draw(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui, sans-serif" font-size="12">`, p.width, p.height, p.width, p.height)
	draw(`<title>%s</title><rect width="100%%" height="100%%" fill="#ffffff"/>`, html.EscapeString(p.title))
	draw(`<text x="%d" y="20" font-size="14" font-weight="600" fill="#222">%s</text>`, p.left, html.EscapeString(p.title))
	for _, v := range x.ticks() {
		draw(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e6e6e6"/><text x="%.1f" y="%.1f" text-anchor="middle" fill="#555">%s</text>`,
			x.at(v), y.from, x.at(v), y.to, x.at(v), y.from+16, short(v))
	}
	for _, v := range y.ticks() {
		draw(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e6e6e6"/><text x="%.1f" y="%.1f" text-anchor="end" fill="#555">%s</text>`,
			x.from, y.at(v), x.to, y.at(v), x.from-6, y.at(v)+4, short(v))
	}
	draw(`<text x="%.1f" y="%d" text-anchor="middle" fill="#222">%s</text>`, (x.from+x.to)/2, p.height-12, html.EscapeString(p.x))
	draw(`<text transform="translate(16 %.1f) rotate(-90)" text-anchor="middle" fill="#222">%s</text>`, (y.from+y.to)/2, html.EscapeString(p.y))
	if p.targetX > 0 {
		draw(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2" stroke-dasharray="6 4"/>`, x.at(p.targetX), y.from, x.at(p.targetX), y.to, colourTarget)
	}
	if p.targetY > 0 {
		draw(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2" stroke-dasharray="6 4"/>`, x.from, y.at(p.targetY), x.to, y.at(p.targetY), colourTarget)
	}
	if len(p.front) > 1 {
		var points []string
		for _, m := range p.front {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(m.x), y.at(m.y)))
		}
		draw(`<polyline points="%s" fill="none" stroke="#555" stroke-width="1.5"/>`, strings.Join(points, " "))
	}
	for _, m := range p.marks {
		fill, opacity := m.colour, 0.9
		if m.muted {
			fill, opacity = "none", 0.55
		}
		draw(`<circle cx="%.1f" cy="%.1f" r="4" fill="%s" stroke="%s" opacity="%.2f"><title>%s</title></circle>`, x.at(m.x), y.at(m.y), fill, m.colour, opacity, html.EscapeString(m.label))
	}
	p.drawChosen(draw, x, y)
	b.WriteString("</svg>\n")
	return b.String()
}

// drawChosen draws the chosen point and the band it may lie in.
func (p *plot) drawChosen(draw func(string, ...any), x, y axis) {
	cx, cy := x.at(p.chosen.x), y.at(p.chosen.y)
	if p.highX > p.lowX {
		draw(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2.5"/>`, x.at(p.lowX), cy, x.at(p.highX), cy, colourChosen)
	}
	if p.highY > p.lowY {
		draw(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2.5"/>`, cx, y.at(p.lowY), cx, y.at(p.highY), colourChosen)
	}
	draw(`<path d="M %.1f %.1f l 8 8 l -8 8 l -8 -8 z" fill="%s" stroke="#fff"><title>%s</title></path>`, cx, cy-8, colourChosen, html.EscapeString(p.chosen.label))
}

// short is a number for an axis.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%gk", v/1e3)
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}
