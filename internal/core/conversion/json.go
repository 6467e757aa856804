package conversion

import (
	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// What the webhook converts is decoded and encoded by the module that becomes Go's
// encoding/json/v2, with the semantics of encoding/json: it takes half the time, and
// most of a conversion is JSON (docs/design/0011).
var (
	// encoding/json reads a document twice, to leave the target alone if the document is
	// none. Here a target that failed is not used.
	decoding = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
	encoding = jsonv1.DefaultOptionsV1()
)

func unmarshal(text []byte, into any) error { return json.Unmarshal(text, into, decoding) }

func marshal(value any) ([]byte, error) { return json.Marshal(value, encoding) }
