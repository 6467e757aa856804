package decision

import (
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
)

// When what is believed of prompts, handovers and arrivals is given up.
const (
	// doubted is after how many looks in a row at which requests waited in spite of it a
	// handover is not believed any more: it was prompts that were slow. Nor are they taken
	// to come at even distances then.
	doubted = 6
	// late is how many times what is believed first tokens take in the mean of such a look.
	late = 1.5
	// off is the part of what is believed by which first tokens may be later without
	// having waited: no model is nearer to engines.
	off = 0.1
)

// calibrate compares what requests got with what the model says they would have got,
// where nothing disturbs the comparison: no backlog, nothing starting or ending.
func (c Config) calibrate(s Snapshot, rate float64, m Memory) capacity.Calibration {
	p, d, l := s.Roles[Prefill], s.Roles[Decode], m.Lengths
	service, still := c.still(s, rate, m)
	if c.Uncorrected {
		return m.Calibration
	}
	if s.Queue > 0 || !still {
		if l.Input <= 0 || !c.decodes(s, rate) {
			return m.Calibration
		}
		s.Observed.FirstToken = 0 // of which nothing is learnt
	}
	prefill, _ := m.Calibration.Scales()
	// What is expected is the model's word: ratios are of its times, not of those that
	// are calibrated already.
	expected := capacity.Target{
		FirstToken: (service + capacity.Even(capacity.Wait(rate, service, p.Ready), m.evenness())) / prefill,
		Token:      c.Model.Token(s.Active/float64(d.Ready), max(1, l.Context())),
	}
	return m.Calibration.Next(s.Observed, expected, c.Handover)
}

// decodes says that nothing disturbs the times of decode, whoever waits for prefill: it is
// not done by the same replicas, and nobody waits for longer than the target.
func (c Config) decodes(s Snapshot, rate float64) bool {
	_, same := c.Model.(capacity.Aggregated)
	d := s.Roles[Decode]
	return !same && s.Queue <= rate*c.Target.FirstToken && d.Ready > 0 && len(d.Starting)+d.Draining == 0
}

// still says that nothing starts or ends and that prefill replicas have time for what comes,
// by what is believed of them: the time of a prompt.
func (c Config) still(s Snapshot, rate float64, m Memory) (service float64, still bool) {
	p, d, l := s.Roles[Prefill], s.Roles[Decode], m.Lengths
	if p.Ready < 1 || d.Ready < 1 || len(p.Starting)+len(d.Starting)+p.Draining+d.Draining > 0 || l.Input <= 0 {
		return 0, false
	}
	prefill, _ := m.Calibration.Scales()
	service = prefill * c.Model.Prefill(l.Input*(1-min(1, l.Hit)))
	return service, !(rate*service > 0.8*float64(p.Ready))
}

// doubt counts the looks at which requests wait for prefill replicas that have time, by what
// is believed of them. Where they keep waiting, what was taken for a handover is the prompts'
// own time from then on, for good: while they wait, nothing else would show it.
func (m *Memory) doubt(c Config, s Snapshot, rate float64) {
	service, still := c.still(s, rate, *m)
	if c.Handover <= 0 || !still {
		return
	}
	// Requests that come by chance wait now and then, and soon do not any more: of those of a
	// whole look the mean would hardly be so late.
	believed := service + capacity.Wait(rate, service, s.Roles[Prefill].Ready) + c.Handover
	if s.Queue <= float64(s.Roles[Prefill].Ready) || !(s.Observed.FirstToken > late*believed) {
		m.Waits = 0
		return
	}
	m.Waits++
	if m.Waits == doubted {
		m.Calibration = m.Calibration.Slower(1 + m.Calibration.Handover/service)
	}
}

// even takes in the bins of a look. More than one were made of what came in all of their
// time, and look more even than they were. Requests that are as many in every bin may still
// come in bursts within it, or as fast as replicas let them: where they keep waiting for
// prefill replicas that have time, that is not believed any more, for good.
func (m *Memory) even(c Config, s Snapshot, rate float64) {
	if len(s.Bins) == 1 {
		m.Evenness = m.Evenness.Next(s.Bins[0])
	} else {
		m.Evenness = m.Evenness.Gap()
	}
	p, first := s.Roles[Prefill], s.Observed.FirstToken
	if m.Bursts >= doubted || !(first > 0) || p.Ready < 1 || len(p.Starting)+p.Draining > 0 || m.Lengths.Input <= 0 {
		return
	}
	prefill, _ := m.Calibration.Scales()
	prompt := prefill * c.Model.Prefill(m.Lengths.Input*(1-min(1, m.Lengths.Hit)))
	alone := prompt + c.Handover
	switch late := alone+c.Margins.Waits*max(0, first-(1+off)*alone) > c.Target.FirstToken; {
	case !late:
		m.Bursts = 0
	case rate*prompt <= float64(p.Ready): // or it is more replicas that they wait for
		m.Bursts++
	}
}

// evenness is how evenly requests come, as far as that is believed.
func (m *Memory) evenness() float64 {
	if m.Bursts >= doubted {
		return 0
	}
	return m.Evenness.Value()
}
