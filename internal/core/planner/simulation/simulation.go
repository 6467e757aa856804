// Package simulation plays a trace against replicas that start, serve, drain and end,
// with a policy that decides about them as it would about real ones. Routing is ideal
// and the model is exact; what differs between two runs is the policy.
//
// A request waits in one line for a free prefill replica, then decodes on the replica
// with the fewest others, at the pace that their number and length allow.
package simulation

import (
	"math"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
)

// Slot is the length in seconds of what is counted together.
const Slot = 5

// Setup is what is played.
type Setup struct {
	Trace  trace.Trace
	Model  capacity.Model
	Target capacity.Target
	// Startup is how many seconds a replica takes to serve.
	Startup float64
	// Budget of GPUs; 0 is none.
	Budget int
	GPUs   decision.Vector
	// Begin is what there is at first.
	Begin decision.Vector
	// Warm is until when requests and GPUs are played and not counted.
	Warm float64
}

// Policy decides. One is used for one run.
type Policy interface {
	// Interval is how often it is asked, in seconds: a multiple of Slot.
	Interval() int
	// Decide says what to have; ok is false where it writes nothing.
	Decide(v *View) (replicas decision.Vector, ok bool)
}

// Result is what came of it.
type Result struct {
	Requests int
	// Met, MetFirst and MetToken are the shares of requests within both targets, that of
	// the first token, and that of the mean time between tokens.
	Met, MetFirst, MetToken float64
	// First95 and Token95 are what 95 of 100 requests got at most, in seconds, within a
	// tenth.
	First95, Token95 float64
	GPUHours         float64
	// RoleHours are those of each role.
	RoleHours [decision.Roles]float64
	// Changes are decisions that changed something, Violations moments over the budget.
	Changes, Violations int
	Peak                int // GPUs
	Length              float64
	Slots               []Count
}

// Count is what happened in a slot. Sums are over requests.
type Count struct {
	Began              int
	input, inputSquare float64
	lengths            [buckets]uint32
	Ended              int
	Met                int // of those that ended
	endedInput         float64
	output             float64
	firsts             int
	first, token       float64
	tokens             float64 // time between all of them
	duration           float64
	inPrefill, active  float64 // time integrals
	Wanted, Ready      decision.Vector
	GPUs               int
}

type (
	// prompt is one that is computed.
	prompt struct {
		until   float64
		request int32
	}
	// sequence is one that decodes.
	sequence struct {
		end     float64 // in tokens of its replica
		first   float64 // when its first token came
		began   float64
		context float32
		output  int32
		input   int32
		inTime  bool
	}
	start struct {
		ready, began float64
		role         decision.Role
	}
	replica struct {
		sequences []sequence // a heap by end
		held      float64    // tokens
		made      float64    // tokens of each
		at        float64
		pace      float64
		next      float64 // when the next sequence ends
		draining  bool
	}
)

// run is a simulation under way.
type run struct {
	Setup
	now              float64
	arrived, served  int // requests that came, and whose prefill began
	prefill          int // ready
	computing        []prompt
	decode           []*replica
	spare            []*replica // ended, to be used again
	active           int
	starts           []start // by time
	wanted           decision.Vector
	result           Result
	met, first, told int
	slot             *Count
	slotEnd          float64
	accounted        float64
	gpuSeconds       [decision.Roles]float64
	firsts, tokens   [bands]int
	counts           bool // it is past Warm
}

// bands are logarithmic, a tenth each, from a tenth of a millisecond.
const bands = 160

func band(seconds float64) int {
	if seconds <= 1e-4 {
		return 0
	}
	return min(bands-1, int(math.Log(seconds/1e-4)/math.Log(1.1)))
}

func quantile(counts *[bands]int, share float64, total int) float64 {
	left := int(math.Ceil(share * float64(total)))
	for i, n := range counts {
		if left -= n; left <= 0 {
			return 1e-4 * math.Pow(1.1, float64(i+1))
		}
	}
	return 0
}

// Run plays a setup under a policy.
func Run(s Setup, p Policy) Result {
	r := &run{Setup: s, prefill: s.Begin[decision.Prefill], wanted: s.Begin, counts: s.Warm <= 0}
	for range s.Begin[decision.Decode] {
		r.decode = append(r.decode, &replica{next: math.Inf(1)})
	}
	r.result.Slots = make([]Count, 1, int(s.Trace.Length()/Slot)+64)
	r.slot, r.slotEnd = &r.result.Slots[0], Slot
	view := &View{run: r}
	end := s.Trace.Length()
	for {
		event, at, which := r.next()
		if r.slotEnd <= at && r.slotEnd <= math.Max(end, r.now)+Slot {
			if at == math.Inf(1) && r.now >= end {
				break
			}
			r.advance(r.slotEnd)
			decides := r.now < end && int(r.slotEnd)%p.Interval() == 0
			r.close()
			if decides {
				if v, ok := p.Decide(view); ok {
					r.scale(v)
				}
			}
			continue
		}
		if event == nothing {
			break
		}
		r.advance(at)
		switch event {
		case arrival:
			r.arrive()
		case computed:
			r.computed()
		case decoded:
			r.ended(which)
		case started:
			r.ready()
		}
	}
	r.close()
	res := &r.result
	for _, q := range s.Trace {
		if q.At >= s.Warm {
			res.Requests++
		}
	}
	res.Length = end - s.Warm
	n := math.Max(1, float64(res.Requests))
	res.Met, res.MetFirst, res.MetToken = float64(r.met)/n, float64(r.first)/n, float64(r.told)/n
	res.First95, res.Token95 = quantile(&r.firsts, 0.95, res.Requests), quantile(&r.tokens, 0.95, res.Requests)
	for role, seconds := range r.gpuSeconds {
		res.RoleHours[role] = seconds / 3600
		res.GPUHours += seconds / 3600
	}
	return *res
}

type event int

const (
	nothing event = iota
	arrival
	computed
	decoded
	started
)

// next is the event that comes first.
func (r *run) next() (what event, at float64, which int) {
	at = math.Inf(1)
	if r.arrived < len(r.Trace) {
		what, at = arrival, r.Trace[r.arrived].At
	}
	if len(r.computing) > 0 && r.computing[0].until < at {
		what, at = computed, r.computing[0].until
	}
	for i, d := range r.decode {
		if d.next < at {
			what, at, which = decoded, d.next, i
		}
	}
	if len(r.starts) > 0 && r.starts[0].ready < at {
		what, at = started, r.starts[0].ready
	}
	return what, at, which
}

// advance goes on to a time, and adds up what was there meanwhile.
func (r *run) advance(to float64) {
	d := to - r.now
	r.slot.inPrefill += d * float64(r.arrived-r.served+len(r.computing))
	r.slot.active += d * float64(r.active)
	r.now = to
}

// held are the replicas that have GPUs.
func (r *run) held() decision.Vector {
	n := decision.Vector{max(r.prefill, len(r.computing)), len(r.decode)}
	for _, s := range r.starts {
		n[s.role]++
	}
	return n
}

// gpus are all that are held.
func (r *run) gpus() int { return r.held().GPUs(r.GPUs) }

// account adds up the GPUs until now; it is called before they change.
func (r *run) account() {
	for role, n := range r.held() {
		r.gpuSeconds[role] += float64(n*r.GPUs[role]) * (r.now - r.accounted)
	}
	r.accounted = r.now
}

// peak is looked at after they changed.
func (r *run) peak() {
	n := r.gpus()
	r.result.Peak = max(r.result.Peak, n)
	if r.Budget > 0 && n > r.Budget {
		r.result.Violations++
	}
}

// close ends a slot and begins the next.
func (r *run) close() {
	r.account()
	if !r.counts && r.now >= r.Warm {
		r.counts, r.gpuSeconds = true, [decision.Roles]float64{}
		r.result.Changes, r.result.Violations, r.result.Peak = 0, 0, 0
	}
	r.peak()
	r.slot.Wanted, r.slot.GPUs = r.wanted, r.gpus()
	r.slot.Ready = decision.Vector{r.prefill, r.serving()}
	r.result.Slots = append(r.result.Slots, Count{})
	r.slot = &r.result.Slots[len(r.result.Slots)-1]
	r.slotEnd += Slot
}

func (r *run) serving() int {
	n := 0
	for _, d := range r.decode {
		if !d.draining {
			n++
		}
	}
	return n
}

func (r *run) arrive() {
	q := &r.Trace[r.arrived]
	r.arrived++
	r.slot.Began++
	length := float64(q.Input)
	r.slot.input += length
	r.slot.inputSquare += length * length
	r.slot.lengths[bucket(q.Input)]++
	r.begin()
}

// begin gives prompts to replicas that have none.
func (r *run) begin() {
	for len(r.computing) < r.prefill && r.served < r.arrived {
		until := r.now + r.Model.Prefill(float64(r.Trace[r.served].Input))
		r.computing = push(r.computing, prompt{until, int32(r.served)}, func(a, b *prompt) bool { return a.until < b.until })
		r.served++
	}
}

// computed moves a prompt to the decode replica with the fewest sequences.
func (r *run) computed() {
	if len(r.computing) > r.prefill {
		r.account()
	}
	var done prompt
	done, r.computing = pop(r.computing, func(a, b *prompt) bool { return a.until < b.until })
	q := &r.Trace[done.request]
	wait := r.now - q.At
	inTime := wait <= r.Target.FirstToken
	if q.At >= r.Warm {
		r.firsts[band(wait)]++
		if inTime {
			r.first++
		}
	}
	r.slot.firsts++
	r.slot.first += wait
	var to *replica
	for _, d := range r.decode {
		if to == nil || to.draining && !d.draining || to.draining == d.draining && len(d.sequences) < len(to.sequences) {
			to = d
		}
	}
	to.move(r.now)
	context := float32(q.Input) + float32(q.Output)/2
	to.held += float64(context)
	to.sequences = push(to.sequences, sequence{
		end: to.made + float64(q.Output), first: r.now, began: q.At, context: context, output: q.Output, input: q.Input, inTime: inTime,
	}, sooner)
	r.active++
	r.pace(to)
	r.begin()
}

func sooner(a, b *sequence) bool { return a.end < b.end }

// move lets the sequences of a replica decode until now.
func (d *replica) move(now float64) {
	if len(d.sequences) > 0 {
		d.made += (now - d.at) / d.pace
	}
	d.at = now
}

// pace is a replica's, for as long as its sequences are the same.
func (r *run) pace(d *replica) {
	if len(d.sequences) == 0 {
		d.next, d.made, d.held = math.Inf(1), 0, 0
		return
	}
	n := float64(len(d.sequences))
	d.pace = r.Model.Token(n, d.held/n)
	d.next = r.now + max(0, d.sequences[0].end-d.made)*d.pace
}

// ended takes out the sequences of a replica that have all their tokens.
func (r *run) ended(which int) {
	d := r.decode[which]
	d.move(r.now)
	for len(d.sequences) > 0 && d.sequences[0].end <= d.made+1e-6 {
		var s sequence
		s, d.sequences = pop(d.sequences, sooner)
		d.held -= float64(s.context)
		r.active--
		took := (r.now - s.first) / float64(s.output)
		c, counts := r.slot, s.began >= r.Warm
		if counts {
			r.tokens[band(took)]++
		}
		c.Ended++
		c.endedInput += float64(s.input)
		c.output += float64(s.output)
		c.token += took
		c.tokens += took * float64(s.output)
		c.duration += r.now - s.began
		if took <= r.Target.Token {
			if s.inTime {
				c.Met++
			}
			if counts && s.inTime {
				r.met++
			}
			if counts {
				r.told++
			}
		}
	}
	r.pace(d)
	if len(d.sequences) == 0 && d.draining {
		r.account()
		r.remove(which)
	}
}

func (r *run) remove(which int) {
	r.spare = append(r.spare, r.decode[which])
	r.decode = append(r.decode[:which], r.decode[which+1:]...)
}

// ready is a start that is over.
func (r *run) ready() {
	role := r.starts[0].role
	r.starts = r.starts[1:]
	if role == decision.Prefill {
		r.prefill++
		r.begin()
		return
	}
	d := &replica{}
	if n := len(r.spare); n > 0 {
		d, r.spare = r.spare[n-1], r.spare[:n-1]
		*d = replica{sequences: d.sequences[:0]}
	}
	d.at, d.next = r.now, math.Inf(1)
	r.decode = append(r.decode, d)
}

// starting counts the starts of a role.
func (r *run) starting(role decision.Role) int {
	n := 0
	for _, s := range r.starts {
		if s.role == role {
			n++
		}
	}
	return n
}

// scale does what a workload controller does with a number of replicas: it starts
// what is missing, gives up starts before it ends what serves, and lets what it ends
// finish its requests.
func (r *run) scale(to decision.Vector) {
	if to == r.wanted {
		return
	}
	r.account()
	r.result.Changes++
	r.wanted = to
	ready := decision.Vector{r.prefill, r.serving()}
	for role := range decision.Role(decision.Roles) {
		missing := max(0, to[role]) - ready[role] - r.starting(role)
		for ; missing > 0; missing-- {
			r.starts = append(r.starts, start{ready: r.now + r.Startup, began: r.now, role: role})
		}
		for i := len(r.starts) - 1; i >= 0 && missing < 0; i-- {
			if r.starts[i].role == role {
				r.starts = append(r.starts[:i], r.starts[i+1:]...)
				missing++
			}
		}
		for ; missing < 0; missing++ {
			r.end(role)
		}
	}
	r.peak()
}

// end lets one ready replica of a role go: of decode the one with the fewest sequences.
func (r *run) end(role decision.Role) {
	if role == decision.Prefill {
		r.prefill--
		return
	}
	which := -1
	for i, d := range r.decode {
		if !d.draining && (which < 0 || len(d.sequences) < len(r.decode[which].sequences)) {
			which = i
		}
	}
	if which < 0 {
		return
	}
	if len(r.decode[which].sequences) == 0 {
		r.remove(which)
		return
	}
	r.decode[which].draining = true
}

// push and pop keep a heap in a list.
func push[T any](heap []T, value T, less func(a, b *T) bool) []T {
	heap = append(heap, value)
	i := len(heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !less(&value, &heap[parent]) {
			break
		}
		heap[i] = heap[parent]
		i = parent
	}
	heap[i] = value
	return heap
}

func pop[T any](heap []T, less func(a, b *T) bool) (T, []T) {
	top := heap[0]
	last := len(heap) - 1
	value := heap[last]
	heap = heap[:last]
	if last == 0 {
		return top, heap
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && less(&heap[child+1], &heap[child]) {
			child++
		}
		if !less(&heap[child], &value) {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = value
	return top, heap
}
