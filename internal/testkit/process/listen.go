package process

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Listening is where a process takes connections: the way to learn a port that
// the system chose.
func Listening(pid int) ([]netip.AddrPort, error) {
	sockets, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return nil, err
	}
	var own []string
	for _, socket := range sockets {
		if to, err := os.Readlink(socket); err == nil { // it may be closed meanwhile
			own = append(own, to)
		}
	}
	var found []netip.AddrPort
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			const state, listens, inode = 3, "0A", 9
			columns := strings.Fields(line)
			if len(columns) <= inode || columns[state] != listens || !slices.Contains(own, "socket:["+columns[inode]+"]") {
				continue
			}
			at, err := address(columns[1])
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", line, err)
			}
			found = append(found, at)
		}
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return found, nil
}

// address reads one as the kernel writes it: words of four bytes, each in the
// order of a little-endian machine, and a port.
func address(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	ip, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", host)
	}
	number, err := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), err
}
