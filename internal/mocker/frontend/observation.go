package frontend

import "time"

// observation measures one request.
type observation struct {
	metrics               *metrics
	model, endpoint, kind string
	start, last           time.Time
	tokens                int
	queued, left          bool
	length                int
}

func (f *Frontend) observe(model, endpoint, kind string) *observation {
	now := time.Now()
	o := &observation{metrics: f.metrics, model: label(model), endpoint: endpoint, kind: kind, start: now, queued: true}
	f.metrics.started.WithLabelValues(o.model).Inc()
	f.metrics.inflight.WithLabelValues(o.model).Inc()
	f.metrics.queued.WithLabelValues(o.model).Inc()
	return o
}

func (o *observation) input(tokens int) { o.length = tokens }

// output notes a chunk: the first feeds the time to first token only, later
// ones one inter-token observation per token.
func (o *observation) output(tokens, cached int) {
	if tokens == 0 {
		return
	}
	now := time.Now()
	if o.queued {
		o.dequeue()
		o.metrics.firstToken.WithLabelValues(o.model).Observe(now.Sub(o.start).Seconds())
		o.metrics.inputLength.WithLabelValues(o.model).Observe(float64(o.length))
		o.metrics.cached.WithLabelValues(o.model).Observe(float64(cached))
	} else {
		gap := now.Sub(o.last).Seconds() / float64(tokens)
		for range tokens {
			o.metrics.interToken.WithLabelValues(o.model).Observe(gap)
		}
	}
	o.last = now
	o.tokens += tokens
	o.metrics.outputTokens.WithLabelValues(o.model).Add(float64(tokens))
}

func (o *observation) dequeue() {
	if o.queued {
		o.queued = false
		o.metrics.queued.WithLabelValues(o.model).Dec()
	}
}

func (o *observation) disconnected() {
	o.left = true
	o.metrics.disconnected.Inc()
}

func (o *observation) end(err error) {
	o.dequeue()
	o.metrics.inflight.WithLabelValues(o.model).Dec()
	status := "success"
	if err != nil || o.left {
		status = "error"
	}
	o.metrics.requests.WithLabelValues(o.model, o.endpoint, o.kind, status).Inc()
	o.metrics.duration.WithLabelValues(o.model).Observe(time.Since(o.start).Seconds())
	if o.tokens > 0 {
		o.metrics.outputLength.WithLabelValues(o.model).Observe(float64(o.tokens))
	}
}
