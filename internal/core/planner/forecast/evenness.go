package forecast

import "slices"

// What is kept of changes from one bin to the next, and how they are judged.
const (
	changes    = 48 // four minutes of 5 s
	changesMin = 24 // before which nothing is said
	// trimmed is the share of changes, the largest, that are not counted: a step is not
	// chance. What is left of chance's own has the mean that is given.
	trimmed     = 0.1
	trimmedMean = 0.623
	// doubtful is how many times what was seen is believed: of so few changes the mean is
	// half of what it ought to be in one case of some dozens.
	doubtful = 2
)

// Evenness is what has been seen of how evenly requests come. The zero value has seen
// nothing.
type Evenness struct {
	last float64 // requests of the last bin
	seen bool    // there was one, and no gap since
	// squares are those of changes over their expectation if requests come by chance, the
	// newest last.
	squares []float64
}

// Next takes in the requests of one more bin.
func (e Evenness) Next(requests float64) Evenness {
	if sum := e.last + requests; e.seen && sum > 0 {
		// Counts of chance have their mean for a variance, so a difference of two has both.
		e.squares = appendLast(e.squares, (requests-e.last)*(requests-e.last)/sum, changes)
	}
	e.last, e.seen = requests, true
	return e
}

// Gap says that bins are missing, or were made of fewer looks.
func (e Evenness) Gap() Evenness {
	e.seen = false
	return e
}

// Value is 0 for requests that come by chance, or of which too few were seen, and 1 for
// ones at even distances. Who comes in bursts is at 0.
func (e Evenness) Value() float64 {
	if len(e.squares) < changesMin {
		return 0
	}
	sorted := slices.Sorted(slices.Values(e.squares))
	sorted = sorted[:len(sorted)-int(trimmed*float64(len(sorted)))]
	sum := 0.0
	for _, square := range sorted {
		sum += square
	}
	return max(0, 1-doubtful*sum/float64(len(sorted))/trimmedMean)
}
