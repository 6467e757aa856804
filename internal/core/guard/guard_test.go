//go:build !unguarded

package guard

import "testing"

func TestNoGuardCanBeSwitchedOffInWhatIsShipped(t *testing.T) {
	t.Setenv("DYNAMO_GUARDS_OFF", "anything")
	if Guard("anything").Off() {
		t.Error("the environment switched it off")
	}
}
