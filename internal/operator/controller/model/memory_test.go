package model

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
)

func TestAMemoryIsKeptOnceSomebodyWasCalled(t *testing.T) {
	var m memory
	inherited := []bool{}
	plan := func(calls ...loraplan.Call) {
		m.plan("uid", true, func(known loraplan.Memory) loraplan.Plan {
			inherited = append(inherited, known.Inherited)
			return loraplan.Plan{Calls: calls, Memory: loraplan.Memory{Engines: map[loraplan.Run]loraplan.Engine{"run": {}}}}
		})
	}
	plan()
	plan(loraplan.Call{})
	plan()
	m.forget("uid")
	plan()
	for i, want := range []bool{true, true, false, true} {
		if inherited[i] != want {
			t.Errorf("pass %d: inherited %v, want %v", i, inherited[i], want)
		}
	}
	// What comes back late finds nobody who wants to know.
	m.change("uid", "run", func(loraplan.Engine) loraplan.Engine {
		t.Error("a forgotten model was changed")
		return loraplan.Engine{}
	})
}
