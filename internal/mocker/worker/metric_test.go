package worker

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/observation"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/timing"
)

// A planner reads what a worker serves, whichever engine it plays.
func TestAPlannerUnderstandsTheLoadOfEveryEngine(t *testing.T) {
	for backend := range engineNames {
		t.Run(backend, func(t *testing.T) {
			e := engine.Start(t.Context(), engine.Config{
				Blocks: 64, BlockSize: 4, MaxSequences: 2, MaxBatchedTokens: 32, BesideDecode: 8, Chunked: true, Ranks: 1, Speed: 0.05, Model: timing.Polynomial{},
			})
			for i := range 5 {
				if _, err := e.Submit(engine.Request{Prompt: make([]text.Token, 20), Seed: uint64(i), MaxTokens: 20, Rank: -1}); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "three wait", func() bool { s := e.Stats(); return s.Waiting == 3 && s.Running == 2 && s.ActiveBlocks > 0 })
			m := newMetrics(Config{Backend: backend, Model: "org/m"}, time.Now())
			m.watch(Config{Backend: backend, Model: "org/m"}, e)
			page := httptest.NewRecorder()
			promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
			got, err := observation.ParseEngine(page.Body)
			if err != nil {
				t.Fatal(err)
			}
			cache, told := got.Cache()
			want := float64(e.Stats().ActiveBlocks) / 64
			if diff := cmp.Diff([]float64{2, 3, 1, want}, []float64{got.Running, got.Waiting, float64(got.Told), cache}); diff != "" || !told {
				t.Error(diff)
			}
		})
	}
}
