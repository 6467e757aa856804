package model

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/model"
)

func TestAMemoryIsKeptOnceSomebodyWasCalled(t *testing.T) {
	var m memory
	inherited := []bool{}
	plan := func(calls ...model.Call) {
		m.plan("uid", true, func(known model.Memory) model.Plan {
			inherited = append(inherited, known.Inherited)
			return model.Plan{Calls: calls, Memory: model.Memory{Engines: map[model.Run]model.Engine{"run": {}}}}
		})
	}
	plan()
	plan(model.Call{})
	plan()
	m.forget("uid")
	plan()
	for i, want := range []bool{true, true, false, true} {
		if inherited[i] != want {
			t.Errorf("pass %d: inherited %v, want %v", i, inherited[i], want)
		}
	}
	// What comes back late finds nobody who wants to know.
	m.change("uid", "run", func(model.Engine) model.Engine {
		t.Error("a forgotten model was changed")
		return model.Engine{}
	})
}
