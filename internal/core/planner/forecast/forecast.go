// Package forecast says how many requests a second are to be expected at most until
// replicas that are started now would be ready. Several ways to foresee are tried all
// the time, each is charged for what it would have cost, and the cheapest speaks. It
// sees counts only, and nothing of replicas.
package forecast

import (
	"math"
	"slices"
)

// Way is a way to foresee.
type Way int

// The ways. Each tells the highest level until the horizon.
const (
	// Last is the level as it is.
	Last Way = iota
	// Trend goes on as the last two minutes did, where they grew.
	Trend
	// Filter is a level and a trend by Kalman's filter.
	Filter
	// Season is what followed at this time a day ago, in proportion to the level.
	Season
	// Analogue is what followed when level and slope were most like now.
	Analogue

	ways
)

func (w Way) String() string {
	return [...]string{"last value", "trend", "Kalman filter", "same time yesterday", "analogues"}[w]
}

// Params are what a forecast depends on besides the past.
type Params struct {
	// Step is the length of a bin in seconds.
	Step float64
	// Horizon is how many bins ahead.
	Horizon int
	// Quantile is the share of futures that are to be no higher than is said: what a
	// miss costs over what a miss and an idle replica cost together.
	Quantile float64
	// Level, Trend and Noise are the variances of Kalman's filter.
	Level, Trend, Noise float64
	// Even is how evenly requests come: 0 by chance, 1 at even distances.
	Even float64
}

// What is kept, in bins.
const (
	window     = 24   // of level and slope
	kept       = 1440 // for analogues: two hours of 5 s
	scored     = 240  // of errors
	discount   = 0.9  // of a bin over the next, within the window
	forget     = 0.99 // of a loss, a bin
	furthest   = 150  // seconds for which a slope is believed
	similar    = 10   // analogues
	settle     = 60   // bins that the past must have for analogues beside the horizon
	sigmas     = 2.0  // of the level's own error that is always added
	unsure     = 3.0  // of the slope's, until what was said could be compared
	surprise   = 5.0  // sigmas at which a bin begins something new
	shortSlope = 6    // bins that a slope needs
	day        = 86400
	daySlots   = 288
)

// State is what the past has left. The zero value has seen nothing.
type State struct {
	rates []float64 // requests a second, the newest last
	fits  []fit     // beside each
	since int       // bins since something new began
	seen  int       // bins ever

	filter  filter
	pending []attempt // the oldest first
	ratios  [ways][]float64
	loss    [ways]float64
	days    []float64 // level by slot of the day; NaN where none yet
	// highest levels: of all bins that are kept, and of those a horizon ago.
	peak, before float64
}

// fit is a level at the newest bin, its slope a second, and what is left.
type fit struct {
	level, slope float64
	spread       float64 // of a bin around the line
	weight       float64 // of the bins that it is made of
	steepness    float64 // error of the slope
}

// attempt is what each way said, until the horizon tells.
type attempt struct {
	due  int // bins seen by then
	base int // bins seen when it was made
	said [ways]float64
	high [ways]float64
}

// Forecast is what is to be expected.
type Forecast struct {
	// Level is the rate now, Rate the one to be ready for.
	Level, Rate float64
	// Slope is that of the level, a second.
	Slope float64
	Way   Way
	// Loss is the mean pinball loss of that way, relative to the level; 0 where nothing
	// has been compared yet.
	Loss float64
}

// Next takes in the requests a second of one more bin.
func (s State) Next(rate float64, p Params) State {
	if !(rate >= 0) || math.IsInf(rate, 0) {
		rate = 0
		if n := len(s.rates); n > 0 {
			rate = s.rates[n-1]
		}
	}
	s.rates = appendLast(s.rates, rate, kept)
	s.seen++
	s.since++
	if s.surprised(rate, p.Step) {
		s.since = 1
	}
	f := line(s.rates[len(s.rates)-min(len(s.rates), min(window, s.since)):], p)
	s.fits = appendLast(s.fits, f, kept)
	s.peak, s.before = peaks(s.fits, p.Horizon)
	s.filter = s.filter.next(rate, p)
	s = s.compare(p)
	s = s.remember(p)
	a := attempt{due: s.seen + p.Horizon, base: s.seen}
	for w := range ways {
		a.said[w] = s.foresee(w, p)
		a.high[w] = s.lift(w, a.said[w], p)
	}
	s.pending = appendLast(s.pending, a, 2*max(1, p.Horizon)+2)
	return s
}

// surprised says whether a bin is nothing that the line before it could have led to.
func (s State) surprised(rate, step float64) bool {
	if len(s.fits) < 3 {
		return false
	}
	before := s.fits[len(s.fits)-1]
	expected := max(0, before.level+before.slope*step)
	// Counts scatter at least as chance has it.
	sigma := math.Sqrt(max(before.spread*before.spread, max(expected, 1/step)/step))
	return math.Abs(rate-expected) > surprise*sigma
}

// line is a discounted least-squares line through the bins.
func line(rates []float64, p Params) fit {
	step := p.Step
	n := len(rates)
	if n < 3 {
		sum := 0.0
		for _, r := range rates {
			sum += r
		}
		mean := sum / float64(n)
		// Counts scatter as chance has it, or less; by one request at least.
		return fit{level: mean, spread: math.Sqrt(max((1-p.Even)*mean, 1/step) / step), weight: float64(n)}
	}
	var w, sx, sy, sxx, sxy float64
	weight := 1.0
	for i := n - 1; i >= 0; i-- {
		x, y := float64(i-(n-1)), rates[i]
		w += weight
		sx += weight * x
		sy += weight * y
		sxx += weight * x * x
		sxy += weight * x * y
		weight *= discount
	}
	f := fit{weight: w, level: sy / w}
	slope := 0.0
	if n >= shortSlope {
		slope = (w*sxy - sx*sy) / (w*sxx - sx*sx)
		f.level = (sy - slope*sx) / w
		f.steepness = 1 / math.Sqrt(sxx-sx*sx/w)
	}
	weight = 1
	left := 0.0
	for i := n - 1; i >= 0; i-- {
		d := rates[i] - f.level - slope*float64(i-(n-1))
		left += weight * d * d
		weight *= discount
	}
	f.spread = math.Sqrt(left / w)
	f.level = max(0, f.level)
	f.slope = slope / step
	// A spread of few bins is itself a guess: the variance of Student's distribution.
	f.steepness *= f.spread / step * math.Sqrt(float64(n)/float64(max(1, n-4)))
	return f
}

// error is the level's own.
func (f fit) error() float64 { return f.spread / math.Sqrt(f.weight) }

// foresee is what one way says.
func (s State) foresee(w Way, p Params) float64 {
	now := s.fits[len(s.fits)-1]
	trend := s.known(now.level + max(0, now.slope)*far(p))
	switch w {
	case Trend:
		return trend
	case Filter:
		return max(now.level, s.known(s.filter.level+max(0, s.filter.trend)*float64(p.Horizon)))
	case Season:
		if high, ok := s.yesterday(p); ok {
			return high
		}
		return trend
	case Analogue:
		if high, ok := s.analogue(p); ok {
			if high < trend {
				return max(now.level, 0.75*high+0.25*trend)
			}
			return high
		}
		return trend
	default:
		return now.level
	}
}

// far is for how many seconds a slope is believed.
func far(p Params) float64 { return min(float64(p.Horizon)*p.Step, furthest) }

// known bounds what a slope leads to by the highest level that came before it, where the
// level is below that: what rises again rises as high as it did, until it has.
func (s State) known(said float64) float64 {
	if s.before > s.fits[len(s.fits)-1].level {
		return min(said, s.before)
	}
	return said
}

// peaks are the highest level of all, and of all but the newest of a horizon.
func peaks(fits []fit, horizon int) (all, before float64) {
	for i := range fits {
		all = max(all, fits[i].level)
		if i < len(fits)-horizon {
			before = all
		}
	}
	return all, before
}

// analogue is the level plus what was added to it, in eight of ten cases at most,
// after the moments that were most like now.
func (s State) analogue(p Params) (float64, bool) {
	n := len(s.fits)
	if n <= p.Horizon+settle {
		return 0, false
	}
	low, high, steep := math.Inf(1), 0.0, 1e-6
	for _, f := range s.fits {
		low, high, steep = min(low, f.level), max(high, f.level), max(steep, math.Abs(f.slope))
	}
	span := max(1e-6, high-low)
	now := s.fits[n-1]
	type moment struct {
		at       int
		distance float64
	}
	var best [similar]moment
	found := 0
	for i := window / 2; i < n-p.Horizon; i++ {
		d := math.Abs(s.fits[i].level-now.level)/span + 0.7*math.Abs(s.fits[i].slope-now.slope)/steep
		if found == similar && d >= best[found-1].distance {
			continue
		}
		at := found
		if found < similar {
			found++
		} else {
			at--
		}
		for ; at > 0 && best[at-1].distance > d; at-- {
			best[at] = best[at-1]
		}
		best[at] = moment{i, d}
	}
	added := make([]float64, 0, similar)
	for _, m := range best[:found] {
		most := 0.0
		for _, f := range s.fits[m.at : m.at+p.Horizon+1] {
			most = max(most, f.level)
		}
		added = append(added, most-s.fits[m.at].level)
	}
	slices.Sort(added)
	return now.level + added[len(added)*8/10], true
}

// remember keeps the level by the time of the day. Days are counted from the first bin,
// whenever that was.
func (s State) remember(p Params) State {
	if s.days == nil {
		s.days = slices.Repeat([]float64{math.NaN()}, daySlots)
	}
	at := s.slot(0, p)
	if at != s.slot(-1, p) {
		s.days = slices.Clone(s.days)
		level := s.fits[len(s.fits)-1].level
		if before := s.days[at]; !math.IsNaN(before) {
			level = (before + level) / 2
		}
		s.days[at] = level
	}
	return s
}

// slot is that of a bin so many after the newest.
func (s State) slot(after int, p Params) int {
	seconds := math.Mod(float64(s.seen+after)*p.Step, day)
	return min(max(0, int(seconds/day*daySlots)), daySlots-1)
}

// yesterday is the highest level until the horizon a day ago, scaled to today's.
func (s State) yesterday(p Params) (float64, bool) {
	if float64(s.seen)*p.Step < day {
		return 0, false
	}
	now := s.fits[len(s.fits)-1].level
	then := s.days[s.slot(0, p)]
	high := then
	for i := 0; i <= p.Horizon; i++ {
		high = max(high, s.days[s.slot(i, p)])
	}
	if math.IsNaN(high) || !(then > 0) {
		return 0, false
	}
	return now * min(high/then, 4), true
}

// compare charges the ways for attempts whose horizon has come.
func (s State) compare(p Params) State {
	due := 0
	for due < len(s.pending) && s.pending[due].due <= s.seen {
		due++
	}
	for _, a := range s.pending[:due] {
		high, ok := s.highest(s.seen - a.base)
		if !ok {
			continue
		}
		for w := range ways {
			miss := high - a.high[w]
			s.loss[w] = forget*s.loss[w] + (1-forget)*max(p.Quantile*miss, (p.Quantile-1)*miss)
			if a.said[w] > 0 {
				s.ratios[w] = appendLast(s.ratios[w], high/a.said[w], scored)
			}
		}
	}
	s.pending = s.pending[due:]
	return s
}

// highest is the highest mean of three bins among the last n.
func (s State) highest(n int) (float64, bool) {
	if n < 1 || n > len(s.rates) {
		return 0, false
	}
	high := 0.0
	last := s.rates[len(s.rates)-n:]
	width := min(3, len(last))
	for i := width; i <= len(last); i++ {
		sum := 0.0
		for _, r := range last[i-width : i] {
			sum += r
		}
		high = max(high, sum/float64(width))
	}
	return high, true
}

// lift adds to what a way said what it was short of before, in as many cases as asked. That
// does not lead beyond what has come: a way that was short by half in a trough is not short by
// half at a peak. Until there is a before, nobody knows how a rate changes within a horizon
// but by the line, and that is added which the line may be wrong by there.
func (s State) lift(w Way, said float64, p Params) float64 {
	now := s.fits[len(s.fits)-1]
	least := now.level + sigmas*now.error()
	if len(s.ratios[w]) < window {
		return max(least, said+math.Hypot(sigmas*now.error(), unsure*now.steepness*far(p)))
	}
	sorted := slices.Clone(s.ratios[w])
	slices.Sort(sorted)
	ratio := sorted[min(len(sorted)-1, int(p.Quantile*float64(len(sorted))))]
	return max(least, min(said*ratio, max(said, s.peak)))
}

// Forecast is what the way that cost the least says now.
func (s State) Forecast(p Params) Forecast {
	if len(s.fits) == 0 {
		return Forecast{}
	}
	now := s.fits[len(s.fits)-1]
	best := Analogue // until something is compared; it says the trend without a past
	for w := range ways {
		if s.loss[w] < s.loss[best] {
			best = w
		}
	}
	f := Forecast{Level: now.level, Slope: now.slope, Way: best}
	f.Rate = s.lift(best, s.foresee(best, p), p)
	if now.level > 0 {
		f.Loss = s.loss[best] / now.level
	}
	return f
}

// Bins is how many have been seen.
func (s State) Bins() int { return s.seen }

// filter is Kalman's, of a level and its trend a bin.
type filter struct {
	begun        bool
	level, trend float64
	p00, p01     float64
	p10, p11     float64
}

func (k filter) next(rate float64, p Params) filter {
	if !k.begun {
		return filter{begun: true, level: rate, p00: 1000, p11: 1000}
	}
	level := k.level + k.trend
	p00, p01 := k.p00+k.p10+k.p01+k.p11+p.Level, k.p01+k.p11
	p10, p11 := k.p10+k.p11, k.p11+p.Trend
	total := p00 + max(p.Noise, 1e-9)
	g0, g1 := p00/total, p10/total
	miss := rate - level
	return filter{
		begun: true, level: level + g0*miss, trend: k.trend + g1*miss,
		p00: (1 - g0) * p00, p01: (1 - g0) * p01, p10: p10 - g1*p00, p11: p11 - g1*p01,
	}
}

// appendLast is a new list with the value at its end, of so many values at most: a
// state that was kept stays as it was.
func appendLast[T any](list []T, value T, most int) []T {
	if len(list) >= most {
		list = list[len(list)-most+1:]
	}
	return append(slices.Clip(list), value)
}
