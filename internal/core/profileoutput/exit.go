package profileoutput

// ExitPermanent is the exit status of a profiler that would fail the same way
// again: its Job is not tried again. Any other failure is.
const ExitPermanent = 3

// ExitStatus is the status with which a profiler ends after a result.
func (r Result) ExitStatus() int {
	switch {
	case r.State == Succeeded:
		return 0
	case r.Reason.Permanent():
		return ExitPermanent
	default:
		return 1
	}
}
