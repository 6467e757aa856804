package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/timing"
)

func small() Config {
	return Config{Blocks: 64, BlockSize: 4, MaxSequences: 8, MaxBatchedTokens: 32, BesideDecode: 8, Watermark: 0.01, Chunked: true, Sharing: true, Ranks: 1, Speed: 1e6, Model: timing.Polynomial{}}
}

func tokens(n int, salt uint32) []text.Token {
	out := make([]text.Token, n)
	for i := range out {
		out[i] = uint32(i)*7 + salt
	}
	return out
}

func collect(t *testing.T, g *Generation) int {
	t.Helper()
	seen := 0
	for {
		produced, finished, err := g.Next(t.Context(), seen)
		if err != nil {
			t.Fatal(err)
		}
		if produced < seen {
			t.Fatalf("produced went back from %d to %d", seen, produced)
		}
		seen = produced
		if finished {
			return seen
		}
	}
}

func TestEveryRequestGetsExactlyItsTokens(t *testing.T) {
	e := Start(t.Context(), small())
	var all sync.WaitGroup
	for i := range 40 {
		g, err := e.Submit(Request{Prompt: tokens(1+i, uint32(i)), Seed: uint64(i), MaxTokens: 1 + i, Rank: -1})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if got := collect(t, g); got != 1+i {
				t.Errorf("request %d got %d tokens, want %d", i, got, 1+i)
			}
		})
	}
	all.Wait()
}

// Eight growing sequences do not fit into the cache together, so the youngest
// are preempted, again and again; all end with all their tokens.
func TestPreemptedRequestsFinish(t *testing.T) {
	config := small()
	config.Blocks = 20
	e := Start(t.Context(), config)
	var all sync.WaitGroup
	for i := range 8 {
		g, err := e.Submit(Request{Prompt: tokens(6, uint32(i)), Seed: uint64(i), MaxTokens: 30, Rank: -1})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if got := collect(t, g); got != 30 {
				t.Errorf("request %d got %d tokens, want 30", i, got)
			}
		})
	}
	all.Wait()
}

func TestSubmitRefusesWhatCanNeverRun(t *testing.T) {
	e := Start(t.Context(), small())
	for name, request := range map[string]Request{
		"a prompt larger than the cache": {Prompt: tokens(4*64, 0), MaxTokens: 1, Rank: -1},
		"no tokens wanted":               {Prompt: tokens(4, 0), Rank: -1},
		"a rank that does not exist":     {Prompt: tokens(4, 0), MaxTokens: 1, Rank: 1},
	} {
		if _, err := e.Submit(request); err == nil {
			t.Errorf("%s was admitted", name)
		}
	}
}

func TestASequenceThatFillsTheCacheAloneEnds(t *testing.T) {
	config := small()
	config.Blocks = 4
	e := Start(t.Context(), config)
	g, err := e.Submit(Request{Prompt: tokens(4, 0), MaxTokens: 1000, Rank: -1})
	if err != nil {
		t.Fatal(err)
	}
	if got := collect(t, g); got != 12 {
		t.Errorf("got %d tokens, want the 12 that fit", got)
	}
}

func TestSecondTimeThePromptIsCached(t *testing.T) {
	e := Start(t.Context(), small())
	for i, want := range []int{0, 8} {
		g, err := e.Submit(Request{Prompt: tokens(10, 0), MaxTokens: 1, Rank: -1})
		if err != nil {
			t.Fatal(err)
		}
		collect(t, g)
		if g.Cached() != want {
			t.Errorf("request %d found %d tokens cached, want %d", i, g.Cached(), want)
		}
	}
}

func TestCancelledRequestsGiveTheirBlocksBack(t *testing.T) {
	config := small()
	config.Speed = 1
	e := Start(t.Context(), config)
	g, err := e.Submit(Request{Prompt: tokens(10, 0), MaxTokens: 100000, Rank: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.Next(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	g.Cancel()
	collect(t, g)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for e.Stats().ActiveBlocks != 0 {
		if ctx.Err() != nil {
			t.Fatalf("still %d blocks active", e.Stats().ActiveBlocks)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestSleepingEngineProducesNothing(t *testing.T) {
	e := Start(t.Context(), small())
	e.Sleep()
	g, err := e.Submit(Request{Prompt: tokens(4, 0), MaxTokens: 3, Rank: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, _, err := g.Next(ctx, 0); err == nil {
		t.Error("a sleeping engine answered")
	}
	e.Wake()
	if got := collect(t, g); got != 3 {
		t.Errorf("after waking got %d tokens, want 3", got)
	}
}
