// Package price says what GPUs cost by the hour, from a table that stands for no
// vendor, and what tokens cost then.
package price

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

//go:embed prices.yaml
var table []byte

// Hour is the price of a GPU for an hour in dollars; ok is false where the table
// has none.
func Hour(gpu string) (dollars float64, ok bool) {
	var file struct {
		Prices map[string]float64 `json:"prices"`
	}
	if err := yaml.Unmarshal(table, &file); err != nil {
		panic(err) // the table is part of the program, and a test reads it
	}
	dollars, ok = file.Prices[gpu]
	return dollars, ok
}

// PerMillion is the price of a million tokens on GPUs that make so many a
// second each.
func PerMillion(hour, tokensPerGPU float64) float64 {
	if tokensPerGPU <= 0 {
		return 0
	}
	return hour / 3600 / tokensPerGPU * 1e6
}

// Highest is more than any GPU and hour costs.
const Highest = 1_000_000

// Tag is what a GPU costs by the hour, and who says so.
type Tag struct {
	Hour float64 // dollars
	By   string
	// Unknown is why there is no price; empty where there is one.
	Unknown string
	// Free says that there is no GPU to pay for.
	Free bool
}

// Find is the price of a GPU, by any of its names; what is given counts more than the
// table. A GPU that nobody names has no price, and neither has one that is not in the table.
func Find(given float64, gpu string) Tag {
	switch {
	case given > 0:
		return Tag{Hour: given, By: "what was given"}
	case gpu == "":
		return Tag{Unknown: "it is not said which GPUs replicas have"}
	}
	name := gpu
	if known, err := perfmodel.Default().GPU(gpu); err == nil {
		name = known.Name
	}
	if hour, ok := Hour(name); ok {
		return Tag{Hour: hour, By: "the built-in table, for " + name}
	}
	return Tag{Unknown: "the built-in table has no price of " + gpu}
}

// Known says whether there is a price.
func (t Tag) Known() bool { return t.Hour > 0 }

// Why is why there is no price.
func (t Tag) Why() string {
	if t.Unknown == "" && !t.Known() {
		return "nobody says what a GPU costs"
	}
	return t.Unknown
}

func (t Tag) String() string {
	if !t.Known() {
		return "what it costs is not known: " + t.Why()
	}
	return fmt.Sprintf("a GPU costs %s (by %s)", Rate(t.Hour), t.By)
}

// Hours is what so many hours of a GPU cost, in words.
func (t Tag) Hours(n float64) string {
	if !t.Known() {
		return "unknown"
	}
	return Dollars(n * t.Hour)
}

// Dollars is a sum, in words.
func Dollars(n float64) string { return fmt.Sprintf("$%.2f", n) }

// Rate is dollars an hour, in words.
func Rate(dollars float64) string { return fmt.Sprintf("$%.2f/h", dollars) }
