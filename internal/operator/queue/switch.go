package queue

import "github.com/dynamo-operator/dynamo-operator/internal/core/guard"

// What paces the work, each with a switch that only the benchmark's build has, so
// that what it gains is measured (make bench-pacing).
const (
	// Batching gathers changes of children.
	Batching guard.Guard = "pacing-batching"
	// LongBatching gathers for longer what only tells more of the same.
	LongBatching guard.Guard = "pacing-long-batching"
	// Priorities have what users ask for come before child events.
	Priorities guard.Guard = "pacing-priorities"
	// Settling puts reports off on children that have just been written.
	Settling guard.Guard = "pacing-settling"
	// Deferring puts reports off while user work is pending.
	Deferring guard.Guard = "pacing-deferring"
)
