package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
)

func TestGrowthIsWantedSoonAfterAStepOrTheTargetIsNotMet(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 7))
	s := subject{"step", trace.Generate(trace.Step(5, 45, 300, 600), 600, 3000, 300, chance), capacity.Target{FirstToken: 0.2, Token: 0.01}, nil, 0}
	for _, x := range []struct {
		rule string
		step time.Duration
		met  bool
	}{
		{"a step that is followed", 300 * time.Second, true},
		{"nothing grows", time.Hour, false},
	} {
		if missed := growth(s, x.step, 0.7); (missed == "") != x.met {
			t.Errorf("%s: %q", x.rule, missed)
		}
	}
}
