package fit

import "github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"

// A gathering is for how many steps an engine was told to keep prompts waiting, so that
// several are computed together. Nothing in the table says so; the scripts that the public
// benchmark publishes do, and first tokens do: see docs/design/0022.
type gathering struct {
	// Every is how many steps pass between looks at what came.
	Every int
	// Steps is for how many the first prompt waits for others, at most. If ranks are
	// balanced it waits until each has one, and for More steps after that.
	Steps, More int
	Balanced    bool
}

// wait is for how many steps a prompt is kept waiting in the mean, and how many others of
// its rank are computed with it, where so many come to each of ranks in a step.
func (g gathering) wait(rate float64, ranks int) (steps, others float64) {
	long := float64(g.Steps)
	switch {
	case g.Every > 0:
		return g.idle(), rate * float64(g.Every)
	case g.Balanced:
		long = min(long, untilEach(rate, ranks)+float64(g.More))
	}
	// The first waits for all of it and who comes meanwhile for half; each is with the
	// others of its rank, and perhaps with the first.
	more := rate * float64(ranks) * long
	return long * (1 + more/2) / (1 + more), rate * long * (2 + more) / (1 + more)
}

// idle is how many steps pass in the mean until it is seen that a prompt came.
func (g gathering) idle() float64 { return float64(g.Every) / 2 }

// untilEach is how many steps pass until each of ranks has a prompt, if they come at random.
func untilEach(rate float64, ranks int) float64 {
	steps := 0.0
	for i := range ranks {
		steps += 1 / (rate * float64(i+1))
	}
	return steps
}

// gathered is how much later a first token comes, in milliseconds.
func (r Row) gathered(e *perfmodel.Estimator, t perfmodel.Terms) float64 {
	if r.Gathering == (gathering{}) {
		return 0
	}
	steps := float64(r.Load.Output) + t.First/t.Token // of a request
	wait, others := r.Gathering.wait(t.Batch/steps, max(1, e.Setup().Parallel.DP))
	return 1e3 * (wait*t.Token + others*t.Added) * (1 - 1/t.Batch)
}

// often is the deployment of Qwen3.5 in 8 bits on B300 whose script looks every 10 steps
// however many users there are.
const often = "config_id=716"

// gatheringOf an aggregated run of the public benchmark.
func gatheringOf(c columns, s perfmodel.Setup) gathering {
	var (
		model    = architecture(s.Model.Name)
		deepseek = model == "DeepSeek-V3"
		eight    = s.Quantisation.Experts == perfmodel.FP8
		equal    = c.int("isl") == 1024 && c.int("osl") == 1024
		users    = users(c)
	)
	switch s.Engine {
	case perfmodel.SGLang: // --scheduler-recv-interval
		switch {
		case s.GPU.Generation != perfmodel.Blackwell || !deepseek && s.Model.Linear == nil:
			return gathering{}
		case users < 16, deepseek && eight && s.Parallel.TP == 4, config.FindString(c.text("silicon_data_source")) == often:
			return gathering{Every: 10}
		}
		return gathering{Every: 30}
	case perfmodel.TRTLLM: // attention_dp_config, batch_wait_timeout_iters
		switch {
		case s.Parallel.DP > 1 && deepseek:
			return gathering{Steps: 60, Balanced: true}
		case s.Parallel.DP > 1: // the engine's own values
			return gathering{Steps: 50, More: 10, Balanced: true}
		case model == "Llama-3.1-70B" && equal && s.Parallel.TP < 8:
			return gathering{Steps: 20}
		case deepseek && eight && s.GPU.Generation == perfmodel.Blackwell && equal && users >= 64 && users < 256:
			return gathering{Steps: 40}
		}
	}
	return gathering{}
}
