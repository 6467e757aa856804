// Package price says what GPUs cost by the hour, from a table that stands for no
// vendor, and what tokens cost then.
package price

import (
	_ "embed"

	"sigs.k8s.io/yaml"
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
