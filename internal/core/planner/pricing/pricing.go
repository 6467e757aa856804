// Package pricing says what replicas of prefill and decode cost by the hour, each by its
// own GPU. It knows no table of prices.
package pricing

import (
	"fmt"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
)

// Tags are the prices of a GPU of each role.
type Tags [decision.Roles]price.Tag

// Both is one price for the GPUs of either role.
func Both(t price.Tag) Tags { return Tags{t, t} }

// Common is the price of a GPU whichever role has it; ok is false where those of the roles
// differ. A role without GPUs has none of its own.
func (t Tags) Common() (tag price.Tag, ok bool) {
	prefill, decode := t[decision.Prefill], t[decision.Decode]
	switch {
	case prefill.Free:
		return decode, true
	case decode.Free || prefill == decode:
		return prefill, true
	}
	return price.Tag{}, false
}

// Known says whether there is a price of every GPU.
func (t Tags) Known() bool {
	if tag, ok := t.Common(); ok {
		return tag.Known()
	}
	return t[decision.Prefill].Known() && t[decision.Decode].Known()
}

// Why is why there is no price.
func (t Tags) Why() string {
	if tag, ok := t.Common(); ok {
		return tag.Why()
	}
	var why []string
	for role, tag := range t {
		if !tag.Known() {
			why = append(why, fmt.Sprintf("%s: %s", decision.Role(role), tag.Why()))
		}
	}
	return strings.Join(why, "; ")
}

func (t Tags) String() string {
	tag, ok := t.Common()
	if !ok {
		return fmt.Sprintf("prefill: %s; decode: %s", t[decision.Prefill], t[decision.Decode])
	}
	text := []string{tag.String()}
	for role, own := range t {
		if own.Free && tag.Known() {
			text = append(text, fmt.Sprintf("replicas of %s ask for none", decision.Role(role)))
		}
	}
	return strings.Join(text, "; ")
}

// Hour is what replicas cost in one, by the GPUs of each.
func (t Tags) Hour(replicas, each decision.Vector) float64 {
	sum := 0.0
	for role, tag := range t {
		sum += float64(replicas[role]*each[role]) * tag.Hour
	}
	return sum
}

// Hours is what so many hours of a GPU of each role cost, in words.
func (t Tags) Hours(of [decision.Roles]float64) string {
	if !t.Known() {
		return "unknown"
	}
	sum := 0.0
	for role, tag := range t {
		sum += of[role] * tag.Hour
	}
	return price.Dollars(sum)
}
