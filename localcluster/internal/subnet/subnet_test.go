package subnet

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestASubnetHasOneHolder(t *testing.T) {
	first, err := ReserveAny(7)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()

	if _, err := Reserve(byte(first.Network)); !errors.Is(err, ErrTaken) {
		t.Errorf("second Reserve(%d) = %v, want %v", first.Network, err, ErrTaken)
	}
	second, err := ReserveAny(7)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Network == first.Network {
		t.Errorf("two clusters share subnet %d", first.Network)
	}

	// A cluster that starts meanwhile may be quicker, but not every time.
	for try := 0; ; try++ {
		first.Close()
		again, err := Reserve(byte(first.Network))
		if err == nil {
			again.Close()
			return
		}
		if try == 10 {
			t.Fatalf("Reserve after Close: %v", err)
		}
		if first, err = ReserveAny(7); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReserveRefusesBytesOutsideTheRange(t *testing.T) {
	for _, k := range []byte{0, First - 1, Last + 1} {
		if _, err := Reserve(k); err == nil {
			t.Errorf("Reserve(%d) succeeded", k)
		}
	}
}

func TestAddressesFollowFromTheByte(t *testing.T) {
	k := Network(20)
	got := map[string]string{
		"sentinel":           k.Sentinel().Addr().String(),
		"control plane":      k.ControlPlane().String(),
		"API server":         k.APIServer().String(),
		"services":           k.Services().String(),
		"kubernetes Service": k.KubernetesService().String(),
		"pods":               k.Pods().String(),
		"a pod's process":    k.Loopback(netip.MustParseAddr("10.20.3.4")).String(),
	}
	want := map[string]string{
		"sentinel":           "127.20.255.254",
		"control plane":      "127.20.255.1",
		"API server":         "10.20.0.1",
		"services":           "10.20.192.0/18",
		"kubernetes Service": "10.20.192.1",
		"pods":               "10.20.0.0/16",
		"a pod's process":    "127.20.3.4",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}
