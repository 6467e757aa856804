// Package roundrobin is a queue of flows that take turns: whoever fills one flow
// delays nobody but itself. It is not safe for concurrent use.
package roundrobin

import "container/list"

// Queue holds values by flow. Flows take turns, and the values of one flow come
// in the order in which they were pushed:
//
//	push a1 a2 a3 b1 c1 --> next: a1 b1 c1 a2 a3
//
// While a flow waits for its turn, every other flow gets at most one. The zero
// value is empty.
type Queue[K comparable, V any] struct {
	// turns are the flows that have values, the next one first.
	turns list.List
	flows map[K]*flow[K, V]
	size  int
}

type flow[K comparable, V any] struct {
	key    K
	values list.List
	turn   *list.Element
}

// Item is a place in a queue.
type Item[K comparable, V any] struct {
	flow *flow[K, V]
	at   *list.Element
}

// Push adds a value to the end of a flow. A flow that was empty takes the last
// turn.
func (q *Queue[K, V]) Push(key K, value V) Item[K, V] {
	if q.flows == nil {
		q.flows = map[K]*flow[K, V]{}
	}
	f := q.flows[key]
	if f == nil {
		f = &flow[K, V]{key: key}
		f.turn = q.turns.PushBack(f)
		q.flows[key] = f
	}
	q.size++
	return Item[K, V]{f, f.values.PushBack(value)}
}

// Remove takes a value out that Push returned the place of and that no other
// method has returned since.
func (q *Queue[K, V]) Remove(i Item[K, V]) V {
	value := i.flow.values.Remove(i.at).(V)
	q.size--
	if i.flow.values.Len() == 0 {
		q.turns.Remove(i.flow.turn)
		delete(q.flows, i.flow.key)
	}
	return value
}

// Next takes the first value of the first flow that may have a turn, and moves
// that flow behind all others.
func (q *Queue[K, V]) Next(may func(K) bool) (value V, ok bool) {
	for turn := q.turns.Front(); turn != nil; turn = turn.Next() {
		if f := turn.Value.(*flow[K, V]); may(f.key) {
			q.turns.MoveToBack(turn)
			return q.Remove(Item[K, V]{f, f.values.Front()}), true
		}
	}
	return value, false
}

// Pop takes the first value of one flow, whose turn stays where it is.
func (q *Queue[K, V]) Pop(key K) (value V, ok bool) {
	f := q.flows[key]
	if f == nil {
		return value, false
	}
	return q.Remove(Item[K, V]{f, f.values.Front()}), true
}

// Heads calls visit with the first value of each flow, in the order of their
// turns, until it returns false.
func (q *Queue[K, V]) Heads(visit func(K, V) bool) {
	for turn := q.turns.Front(); turn != nil; turn = turn.Next() {
		if f := turn.Value.(*flow[K, V]); !visit(f.key, f.values.Front().Value.(V)) {
			return
		}
	}
}

// Len is the number of values of all flows.
func (q *Queue[K, V]) Len() int { return q.size }

// LenOf is the number of values of one flow.
func (q *Queue[K, V]) LenOf(key K) int {
	if f := q.flows[key]; f != nil {
		return f.values.Len()
	}
	return 0
}
