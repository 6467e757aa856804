package loraplan

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// NameFault says why a name cannot be an adapter's; empty if it can. Engines
// take the name as the rest of a path, so it must not lead anywhere else.
func NameFault(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case len(name) > 256:
		return "must not be longer than 256 bytes"
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == '\\' || r == unicode.ReplacementChar }):
		return "must not hold control characters or backslashes"
	case slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return part == "" || part == "." || part == ".." }):
		return "must not have empty parts, . or .. between slashes: engines take it as part of a path"
	default:
		return ""
	}
}

// NothingNoted is the note of a model that had one and whose adapters are gone from
// all engines: without any note they may hold what it wants.
const NothingNoted = "[]"

// EncodeNote writes adapters down as text; empty for none.
func EncodeNote(adapters []Adapter) string {
	if len(adapters) == 0 {
		return ""
	}
	text, err := json.Marshal(Sorted(adapters))
	if err != nil {
		panic(err) // strings alone
	}
	return string(text)
}

// DecodeNote reads what EncodeNote wrote. Anybody who may edit the object may
// edit the note, so what could not have come from us is left out.
func DecodeNote(text string) []Adapter {
	var adapters []Adapter
	if err := json.Unmarshal([]byte(text), &adapters); err != nil {
		return nil
	}
	return Sorted(slices.DeleteFunc(adapters, func(a Adapter) bool { return NameFault(a.Name) != "" }))
}
