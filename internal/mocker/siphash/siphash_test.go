package siphash

import "testing"

// Published SipHash-1-3 values exist for the key 00..0f only; with the zero key
// the instance ids of the runtime are the check (see package discovery).
func TestSum13DependsOnLengthAndContent(t *testing.T) {
	seen := map[uint64]string{}
	for _, text := range []string{"", "\x00", "\x00\x00", "a", "b", "1234567", "12345678", "123456789"} {
		sum := Sum13([]byte(text))
		if other, ok := seen[sum]; ok {
			t.Errorf("%q and %q have the same hash", text, other)
		}
		seen[sum] = text
	}
}

func TestSum13NamesInstances(t *testing.T) {
	for name, want := range map[string]uint64{
		"worker-0":                   1186445869714687,
		"fake-name-1-0-worker-nrdfv": 1009006049675451,
	} {
		if got := Sum13(append([]byte(name), 0xff)) & 0x001FFFFFFFFFFFFF; got != want {
			t.Errorf("instance id of %q = %d, want %d", name, got, want)
		}
	}
}
