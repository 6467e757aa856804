package process

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
)

func TestAListenerIsFound(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := listener.Addr().(*net.TCPAddr).AddrPort()
	for closed, want := range []bool{true, false} {
		if closed == 1 {
			listener.Close()
		}
		found, err := Listening(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(found, func(a netip.AddrPort) bool { return a == at }); got != want {
			t.Errorf("%s among %v: %v", at, found, got)
		}
	}
}
