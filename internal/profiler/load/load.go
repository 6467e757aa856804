// Package load asks an OpenAI server for streams and times them: time to first
// token and time between tokens, by percentile. It knows no cluster and judges
// nothing.
package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Shape is what to ask for.
type Shape struct {
	// ISL and OSL are tokens of prompt and answer.
	ISL, OSL int
	// Concurrency users ask at once, and again as soon as they have an answer,
	// unless Rate, in requests a second, lets requests arrive by chance.
	Concurrency int
	Rate        float64
	// Requests are counted. With users, each one's first request finds a server
	// that nobody used and is not; and all go on until every request that counts
	// has its answer, so that the last ones do not run alone.
	Requests int
	// Warmups come first, one by one.
	Warmups int
	// Seed decides about prompts and arrivals. Two runs with the same seed send
	// the same prompts, so the second finds them cached.
	Seed uint64
}

// Distribution sums up one figure over all requests, in milliseconds.
type Distribution struct {
	Avg float64 `json:"avg"`
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Summary is a run's outcome. The names are those of the customary load
// generator's export.
type Summary struct {
	TTFT        Distribution `json:"time_to_first_token"`
	ITL         Distribution `json:"inter_token_latency"`
	Latency     Distribution `json:"request_latency"`
	Requests    int          `json:"request_count"`
	Failed      int          `json:"error_count"`
	Throughput  float64      `json:"output_token_throughput"` // tokens a second
	RequestRate float64      `json:"request_throughput"`      // requests a second
	Prompt      float64      `json:"input_sequence_length"`   // tokens as the server counts them
	Cached      float64      `json:"cached_tokens"`           // of them, on average
}

// Run sends the requests of a shape. It fails if none succeeds or ctx ends;
// single failures are counted, and the first one is told.
func (c *Client) Run(ctx context.Context, s Shape) (Summary, error) {
	words, err := c.calibrate(ctx, s)
	if err != nil {
		return Summary{}, fmt.Errorf("calibrate prompts for %s: %w", c.Model, err)
	}
	chance := rand.New(rand.NewPCG(s.Seed, 1))
	for range s.Warmups {
		if _, err := c.Ask(ctx, prompt(chance, words), s.OSL); err != nil {
			return Summary{}, fmt.Errorf("warm up %s: %w", c.Model, err)
		}
	}
	prompts := make([]string, s.Requests+2*s.users())
	for i := range prompts {
		prompts[i] = prompt(chance, words)
	}
	send := c.closed
	if s.Rate > 0 {
		send = c.open
	}
	begin := time.Now()
	answers, failures := send(ctx, s, prompts)
	took := time.Since(begin)
	if err := ctx.Err(); err != nil {
		return Summary{}, fmt.Errorf("load %s: %w", c.Model, err)
	}
	if len(answers) == 0 {
		return Summary{}, fmt.Errorf("load %s: all %d requests failed: %w", c.Model, s.Requests, errors.Join(failures[:min(1, len(failures))]...))
	}
	summary := summarise(answers, float64(len(answers))/took.Seconds())
	if s.Rate <= 0 {
		summary = summarise(answers, float64(s.users())*1000/summary.Latency.Avg)
	}
	summary.Failed = len(failures)
	return summary, nil
}

// users of a closed loop.
func (s Shape) users() int {
	if s.Rate > 0 {
		return 0
	}
	return max(1, s.Concurrency)
}

// tally gathers answers and failures, each in the order in which they ended.
type tally struct {
	lock     sync.Mutex
	answers  []Answer
	failures []error
}

func (t *tally) add(answer Answer, err error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if err != nil {
		t.failures = append(t.failures, err)
	} else {
		t.answers = append(t.answers, answer)
	}
}

// closed keeps users busy: with prompts of a first round, with those that count,
// and with others until the last of these has its answer.
func (c *Client) closed(ctx context.Context, s Shape, prompts []string) ([]Answer, []error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var t tally
	var next, left atomic.Int64
	left.Store(int64(s.Requests))
	var users sync.WaitGroup
	for range s.users() {
		users.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				answer, err := c.Ask(ctx, prompts[i%len(prompts)], s.OSL)
				if i < s.users() || i >= s.users()+s.Requests {
					continue
				}
				t.add(answer, err)
				if left.Add(-1) == 0 {
					cancel()
				}
			}
		})
	}
	users.Wait()
	return t.answers, t.failures
}

// open lets requests arrive by chance.
func (c *Client) open(ctx context.Context, s Shape, prompts []string) ([]Answer, []error) {
	var t tally
	var group sync.WaitGroup
	chance := rand.New(rand.NewPCG(s.Seed, 2))
	for i, text := range prompts {
		if i > 0 && !pause(ctx, time.Duration(chance.ExpFloat64()/s.Rate*float64(time.Second))) {
			break
		}
		group.Go(func() { t.add(c.Ask(ctx, text, s.OSL)) })
	}
	group.Wait()
	return t.answers, t.failures
}

func pause(ctx context.Context, d time.Duration) bool {
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-over.Done()
	return ctx.Err() == nil
}

func summarise(answers []Answer, rate float64) Summary {
	var ttft, itl, latency []float64
	var tokens, prompt, cached int
	for _, a := range answers {
		ttft = append(ttft, milliseconds(a.First))
		latency = append(latency, milliseconds(a.Last))
		if a.Tokens > 1 {
			itl = append(itl, milliseconds(a.Last-a.First)/float64(a.Tokens-1))
		}
		tokens += a.Tokens
		prompt += a.Prompt
		cached += a.Cached
	}
	n := float64(len(answers))
	return Summary{
		TTFT: distribution(ttft), ITL: distribution(itl), Latency: distribution(latency), Requests: len(answers),
		Throughput: float64(tokens) / n * rate, RequestRate: rate,
		Prompt: float64(prompt) / n, Cached: float64(cached) / n,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func distribution(values []float64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	at := func(q float64) float64 {
		place := q * float64(len(values)-1)
		low := int(math.Floor(place))
		high := min(low+1, len(values)-1)
		return values[low] + (values[high]-values[low])*(place-float64(low))
	}
	return Distribution{
		Avg: sum / float64(len(values)), Min: values[0], Max: values[len(values)-1],
		P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99),
	}
}
