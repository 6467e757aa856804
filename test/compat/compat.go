// Package compat holds the objects that we make of published graphs against
// those that the original operator, NVIDIA's, made of the same graphs, leaf by
// leaf. Every difference is either intended, with its reason in one table, or a
// fault. The outcome is the page docs/compatibility.md.
//
// It does not render anything itself, and it keeps nothing of what it reads but
// numbers and the paths of fields.
package compat

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// difference is one leaf, or one whole object, in which the two disagree.
type difference struct {
	path     workload.Provider
	manifest string
	identity
	// leaf is empty where a whole object is on one side only.
	leaf string
	// theirs and ours are JSON; empty where a side has no such leaf.
	theirs, ours string
}

// whole stands for the value of an object that only one side has.
const whole = "(object)"

// count is how much of one kind agrees on one path.
type count struct {
	objects       int
	leaves, equal int
}

// tally is the outcome for one path.
type tally struct {
	// reasons are those that count for a difference, the first that fits.
	reasons []*reason
	kinds   map[string]*count
	// intended are the differences that each reason explains.
	intended    map[*reason][]difference
	unexplained []difference
	// trim leaves leaves out on both sides.
	trim func(map[string]string) map[string]string
}

func newTally(reasons []*reason) *tally {
	all := func(leaves map[string]string) map[string]string { return leaves }
	return &tally{reasons: reasons, kinds: map[string]*count{}, intended: map[*reason][]difference{}, trim: all}
}

// add compares what both sides made of one manifest.
func (t *tally) add(path workload.Provider, manifest string, theirs, ours []*unstructured.Unstructured) {
	their, our := index(theirs), index(ours)
	for _, id := range sortedIdentities(their) {
		d := difference{path: path, manifest: manifest, identity: id}
		if our[id] == nil {
			d.theirs = whole
			t.explain(d)
			continue
		}
		t.compare(d, t.trim(meaningful(their[id])), t.trim(meaningful(our[id])))
	}
	for _, id := range sortedIdentities(our) {
		if their[id] == nil {
			t.explain(difference{path: path, manifest: manifest, identity: id, ours: whole})
		}
	}
}

// compare counts the leaves of an object that both sides have. What the
// original decided is the measure: a leaf that we add is a difference to be
// explained, but none that it has is thereby missing.
func (t *tally) compare(d difference, theirs, ours map[string]string) {
	c := t.kinds[d.kind]
	if c == nil {
		c = &count{}
		t.kinds[d.kind] = c
	}
	c.objects++
	for _, leaf := range sortedKeys(theirs) {
		d.leaf, d.theirs, d.ours = leaf, theirs[leaf], ours[leaf]
		switch {
		case d.theirs == d.ours:
			c.leaves++
			c.equal++
		case !t.explain(d).aside:
			c.leaves++
		}
	}
	for _, leaf := range sortedKeys(ours) {
		if theirs[leaf] == "" {
			d.leaf, d.theirs, d.ours = leaf, "", ours[leaf]
			t.explain(d)
		}
	}
}

// explain finds the reason for a difference.
func (t *tally) explain(d difference) reason {
	for _, r := range t.reasons {
		if slices.ContainsFunc(r.where, func(w where) bool { return w.matches(d) }) {
			t.intended[r] = append(t.intended[r], d)
			return *r
		}
	}
	t.unexplained = append(t.unexplained, d)
	return reason{}
}

// total sums up all kinds.
func (t *tally) total() count {
	var sum count
	for _, c := range t.kinds {
		sum.objects += c.objects
		sum.leaves += c.leaves
		sum.equal += c.equal
	}
	return sum
}

// percent is how much agrees; of nothing, all.
func (c count) percent() float64 {
	return 100 * float64(c.equal) / float64(cmp.Or(c.leaves, 1))
}
