package managed_test

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
)

// rescale has both workers have so many replicas, as an author would write it.
func (c *cluster) rescale(replicas int32) {
	c.dgd.Generation++
	for _, s := range c.dgd.Spec.Services {
		s.Replicas = new(replicas)
	}
}

// scaled is the graph once it has so many replicas and that is on record.
func (c *cluster) scaled(replicas int32) {
	c.Helper()
	c.rescale(replicas)
	c.until("it to be scaled", func(managed.Decision) bool { return c.serving() == int(replicas) })
	c.quiet()
}

// undone are the replicas and the generation that an undo goes back to.
func (c *cluster) undone() (replicas int32, generation string) {
	c.Helper()
	to := revision.Before(c.revisions, c.dgd.Annotations[v1alpha1.AnnotationGeneration])
	if to == nil {
		c.Fatal("there is nothing to go back to")
	}
	restored, err := revision.Restore(c.dgd, to)
	if err != nil {
		c.Fatal(err)
	}
	return *restored.Spec.Services["decode"].Replicas, revision.Generation(to)
}

func TestUndoGoesBackToWhatWasScaledSinceItWasRolledOut(t *testing.T) {
	c := start(t, 2)
	first := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	c.floor = 1
	for _, n := range []int32{4, 3, 4} { // one that was there before, too
		c.scaled(n)
	}
	c.completed(second)
	if n, id := c.undone(); n != 4 || id != first {
		t.Errorf("undo goes to %d replicas of generation %q", n, id)
	}
	c.scaled(2)
	if n, id := c.undone(); n != 4 || id != first {
		t.Errorf("scaled since, undo goes to %d replicas of generation %q", n, id)
	}
	c.dgd.Spec.Restart = &v1alpha1.Restart{ID: "again"}
	c.until("the restart to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 })
	c.until("the restart to be completed", settled)
	c.quiet()
	if n, id := c.undone(); n != 4 || id != first {
		t.Errorf("restarted since, undo goes to %d replicas of generation %q", n, id)
	}
}

func TestASpecIsOnRecordOnceItIsCarriedOut(t *testing.T) {
	c := start(t, 2)
	before := len(c.revisions)
	c.rescale(3)
	c.reconcile()
	if len(c.revisions) != before {
		t.Error("it is on record before anything of it was made")
	}
	c.scaled(3)
	if len(c.revisions) != before+1 || revision.ResultOf(revision.Stable(c.revisions)) != revision.Completed {
		t.Errorf("%d revisions after %d", len(c.revisions), before)
	}
}

func TestReplicasThatAnAdapterDecidesAreNotOnRecord(t *testing.T) {
	c := start(t, 2)
	for _, s := range c.dgd.Spec.Services {
		s.ScalingAdapter = &v1alpha1.ScalingAdapter{Enabled: true}
	}
	c.scaled(2)
	before := len(c.revisions)
	for n := range int32(4) {
		c.scaled(3 + n)
	}
	if len(c.revisions) != before {
		t.Errorf("%d revisions, and %d before it was scaled", len(c.revisions), before)
	}
}

func TestScalingLeavesWhatUndoGoesBackTo(t *testing.T) {
	c := start(t, 2)
	first := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	c.limit = 3
	c.completed(second)
	for n := range int32(6) {
		c.scaled(3 + n)
	}
	if n, id := c.undone(); n != 2 || id != first || len(c.revisions) > c.limit {
		t.Errorf("%d revisions, and undo goes to %d replicas of generation %q", len(c.revisions), n, id)
	}
}
