package resilience

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// asking is one request: no client here asks twice.
type asking struct {
	begun, ended time.Time
	err          error
}

// traffic is clients that ask one question after the other.
type traffic struct {
	mu    sync.Mutex
	asked []asking
	stop  context.CancelFunc
	all   sync.WaitGroup
}

const (
	// longest bounds an answer: whoever gets none within it was failed.
	longest = time.Minute
	// usual is about how long an answer takes.
	usual = 2 * time.Second
)

// traffic starts clients. What is under way when they are stopped is waited for.
func (w world) traffic(clients int) *traffic {
	ctx, stop := context.WithCancel(w.ctx)
	t := &traffic{stop: stop}
	for n := range clients {
		t.all.Go(func() {
			random := rand.New(rand.NewPCG(*seed, uint64(n)))
			for i := 0; ctx.Err() == nil; i++ {
				begun := time.Now()
				err := w.ask(fmt.Sprintf("client %d asks for the %d. time", n, i), 5+random.IntN(100))
				t.mu.Lock()
				t.asked = append(t.asked, asking{begun, time.Now(), err})
				t.mu.Unlock()
				if err != nil { // a failure takes as long as an answer, or it would count for many
					time.Sleep(time.Until(begun.Add(usual)))
				}
			}
		})
	}
	w.Cleanup(func() { t.end() })
	return t
}

func (w world) ask(question string, tokens int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), longest)
	defer cancel()
	return w.cluster.Chat(ctx, w.url(), modelName, question, tokens, func(string) {})
}

// end stops asking and returns what was asked.
func (t *traffic) end() []asking {
	t.stop()
	t.all.Wait()
	return t.asked
}

// failures are the requests that failed, with when they did after a time.
func failures(all []asking, since time.Time) []string {
	var list []string
	for _, a := range all {
		if a.err != nil {
			list = append(list, fmt.Sprintf("begun %.1fs, failed %.1fs: %v", a.begun.Sub(since).Seconds(), a.ended.Sub(since).Seconds(), a.err))
		}
	}
	return list
}
