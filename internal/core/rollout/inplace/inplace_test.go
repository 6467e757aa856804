package inplace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoll(t *testing.T) {
	for rule, c := range map[string]struct {
		strategy      Strategy
		live, desired int
		want          []Wave
	}{
		"one pod with a surge is started before the other stops": {Strategy{Surge: 1}, 1, 1, []Wave{
			{Start: 1, Old: 1, New: 1, Lowest: 1, HeldOld: 1, HeldNew: 1},
			{Stop: 1, New: 1, Lowest: 1, HeldNew: 1, Leaving: 1},
		}},
		"one pod without a surge is missing meanwhile": {Strategy{Unavailable: 1, Exchange: true}, 1, 1, []Wave{
			{Start: 1, Stop: 1, New: 1, HeldNew: 1},
		}},
		"four at the defaults": {Strategy{Surge: 1, Unavailable: 1}, 4, 4, []Wave{
			{Start: 2, Stop: 1, Old: 3, New: 2, Lowest: 3, HeldOld: 3, HeldNew: 2, Leaving: 1},
			{Start: 2, Stop: 2, Old: 1, New: 4, Lowest: 3, HeldOld: 1, HeldNew: 4, Leaving: 2},
			{Stop: 1, New: 4, Lowest: 4, HeldNew: 4, Leaving: 1},
		}},
		"groups of nodes go one by one": {Strategy{Unavailable: 1, Exchange: true}, 2, 2, []Wave{
			{Start: 1, Stop: 1, Old: 1, New: 1, Lowest: 1, HeldOld: 1, HeldNew: 1},
			{Start: 1, Stop: 1, New: 2, Lowest: 1, HeldNew: 2},
		}},
		"a recreation leaves nothing":          {Strategy{Recreate: true}, 3, 3, []Wave{{Start: 3, Stop: 3, New: 3, HeldNew: 3}}},
		"nothing is replaced where nothing is": {Strategy{Surge: 1}, 0, 0, nil},
		"what has to shrink shrinks first":     {Strategy{Surge: 1}, 2, 1, []Wave{{Start: 1, Stop: 1, Old: 1, New: 1, Lowest: 1, HeldOld: 1, HeldNew: 1, Leaving: 1}, {Stop: 1, New: 1, Lowest: 1, HeldNew: 1, Leaving: 1}}},
		"what has to grow grows first, with old pods": {Strategy{Surge: 1}, 1, 2, []Wave{
			{Start: 1, StartOld: 1, Old: 2, New: 1, Lowest: 1, HeldOld: 2, HeldNew: 1},
			{Start: 1, Stop: 1, Old: 1, New: 2, Lowest: 2, HeldOld: 1, HeldNew: 2, Leaving: 1},
			{Stop: 1, New: 2, Lowest: 2, HeldNew: 2, Leaving: 1},
		}},
		"a strategy that allows nothing goes nowhere": {Strategy{}, 1, 1, []Wave{{Old: 1, Lowest: 1, HeldOld: 1}}},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.strategy.Roll(c.live, c.desired)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoReplacementGoesBelowItsFloorOrOverItsBudget tries every small strategy.
func TestNoReplacementGoesBelowItsFloorOrOverItsBudget(t *testing.T) {
	for desired := 1; desired <= 8; desired++ {
		for surge := range 4 {
			for unavailable := range desired + 1 {
				s := Strategy{Surge: surge, Unavailable: unavailable}
				if surge+unavailable == 0 {
					continue
				}
				waves := s.Roll(desired, desired)
				started := 0
				for i, w := range waves {
					started += w.Start
					if w.Lowest < desired-unavailable || w.HeldOld+w.HeldNew > desired+surge {
						t.Errorf("%d pods, %+v, wave %d: %+v", desired, s, i+1, w)
					}
				}
				if last := waves[len(waves)-1]; started != desired || last.Old != 0 || last.New != desired {
					t.Errorf("%d pods, %+v: %d started, at the end %+v", desired, s, started, last)
				}
			}
		}
	}
}
