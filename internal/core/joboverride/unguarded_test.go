//go:build unguarded

package joboverride

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// TestAttackSucceedsWithoutTheGuardOfTheAccount runs the profiler as an account that
// the author of a request chose.
func TestAttackSucceedsWithoutTheGuardOfTheAccount(t *testing.T) {
	t.Setenv(guard.Variable, string(GuardAccount))
	job := read(t, ours)
	if err := Apply(job, read(t, `{template: {spec: {containers: [], serviceAccountName: admin}}}`)); err != nil {
		t.Fatal(err)
	}
	if job.Template.Spec.ServiceAccountName != "admin" {
		t.Errorf("it runs as %s", job.Template.Spec.ServiceAccountName)
	}
}
