package namespacescope

import (
	"context"
	"errors"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Election is the Lease of a leader election among replicas. It is the library's, and
// tells us in addition when it was renewed: the library knows a lost lease by a timer,
// which a process that was stopped hears of after it has gone on.
type Election struct {
	resourcelock.Interface
	Term *Term
	// Close stops all writes, before the Lease is given back.
	Close func(context.Context) error
}

// Create makes the Lease, with us as its holder.
func (e *Election) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := e.Term.Clock.Now()
	if err := e.Interface.Create(ctx, record); err != nil {
		return err
	}
	e.Term.Renewed(began)
	return nil
}

// Update takes the Lease, renews it or gives it back.
func (e *Election) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != e.Identity() {
		if err := e.Close(ctx); err != nil {
			return err
		}
		e.Term.Lost(errors.New("released"))
		return e.Interface.Update(ctx, record)
	}
	began := e.Term.Clock.Now()
	if err := e.Interface.Update(ctx, record); err != nil {
		return err
	}
	e.Term.Renewed(began)
	return nil
}
