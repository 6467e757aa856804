//go:build unguarded

package guard

import (
	"os"
	"slices"
	"strings"
)

// Variable lists the guards that are left out, separated by commas.
const Variable = "DYNAMO_GUARDS_OFF"

// Off reports whether the environment leaves the check out.
func (g Guard) Off() bool {
	return slices.Contains(strings.Split(os.Getenv(Variable), ","), string(g))
}
