package console

import (
	"net"
	"os"
	"syscall"
	"testing"
)

func TestThePeerOfAConnectionIsKnown(t *testing.T) {
	for rule, c := range map[string]struct {
		// dial connects to a port on loopback, and says how to end that.
		dial func(t *testing.T, port int) (end func())
		// leaves says that it is over before the console looks.
		leaves bool
		want   int
	}{
		"of a socket of IPv4":                          {dial4, false, os.Getuid()},
		"of a socket of IPv6, in the kernel's table 6": {dial6, false, os.Getuid()},
		"one that left is nobody, and not root":        {dial4, true, departed},
		"nor is one of IPv6 that left":                 {dial6, true, departed},
	} {
		t.Run(rule, func(t *testing.T) {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			end := c.dial(t, l.Addr().(*net.TCPAddr).Port)
			if c.leaves {
				end()
			} else {
				defer end()
			}
			accepted, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer accepted.Close()
			if uid, known := peer(accepted); !known || uid != c.want {
				t.Errorf("user %d, known %v; want %d", uid, known, c.want)
			}
		})
	}
}

func dial4(t *testing.T, port int) (end func()) {
	t.Helper()
	c, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = c.Close() } // nothing was written
}

// dial6 connects to ::ffff:127.0.0.1, for which package net would take a socket of IPv4.
func dial6(t *testing.T, port int) (end func()) {
	t.Helper()
	s, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	to := &syscall.SockaddrInet6{Port: port}
	copy(to.Addr[:], net.IPv4(127, 0, 0, 1).To16())
	if err := syscall.Connect(s, to); err != nil {
		t.Fatal(err)
	}
	return func() { _ = syscall.Close(s) } // nothing was written
}
