package address

import "testing"

func TestAnAddressHasTwoSpellings(t *testing.T) {
	a, err := NewPool(17).Take("a")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.Paper(), "10.17.0.2"; got != want {
		t.Errorf("paper %s, want %s", got, want)
	}
	if got, want := a.Loopback(), "127.17.0.2"; got != want {
		t.Errorf("loopback %s, want %s", got, want)
	}
}

func TestAHeldAddressIsNotGivenTwice(t *testing.T) {
	p := NewPool(17)
	seen := map[string]bool{}
	for range 48000 {
		a, err := p.Take("a")
		if err != nil {
			t.Fatal(err)
		}
		if seen[a.Paper()] {
			t.Fatalf("%s given twice", a.Paper())
		}
		seen[a.Paper()] = true
	}
}

func TestAFullPoolSaysSoAndRecovers(t *testing.T) {
	p := NewPool(17)
	var some Address
	for {
		a, err := p.Take("a")
		if err != nil {
			break
		}
		some = a
	}
	p.Release(some)
	if a, err := p.Take("a"); err != nil || a != some {
		t.Fatalf("after a release: %v, %v; want %v", a, err, some)
	}
}

func TestClaim(t *testing.T) {
	for name, c := range map[string]struct {
		paper string
		want  bool
	}{
		"a former address is taken again":        {"10.17.3.4", true},
		"an address of another cluster is not":   {"10.18.3.4", false},
		"a Service address is not":               {"10.17.192.10", false},
		"a loopback address is not":              {"127.17.3.4", false},
		"no address is not":                      {"", false},
		"the network address of a block is not":  {"10.17.3.0", false},
		"an address that someone holds is not":   {"10.17.9.9", false},
		"one's own address is":                   {"10.17.8.8", true},
		"an IPv6 address is not one of the pool": {"fd00::1", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPool(17)
			if _, ok := p.Claim("other", "10.17.9.9"); !ok {
				t.Fatal("first claim refused")
			}
			if _, ok := p.Claim("me", "10.17.8.8"); !ok {
				t.Fatal("own claim refused")
			}
			a, ok := p.Claim("me", c.paper)
			if ok != c.want || ok && a.Paper() != c.paper {
				t.Errorf("Claim(%q) = %v, %v; want %v", c.paper, a.Paper(), ok, c.want)
			}
		})
	}
}

func TestTheDeadHoldNothing(t *testing.T) {
	p := NewPool(17)
	p.Claim("dead", "10.17.0.8")
	p.Claim("alive", "10.17.0.9")
	p.Retain(func(holder string) bool { return holder == "alive" })
	if _, ok := p.Claim("me", "10.17.0.8"); !ok {
		t.Error("the address of the dead is still held")
	}
	if _, ok := p.Claim("me", "10.17.0.9"); ok {
		t.Error("the address of the living was given away")
	}
}
