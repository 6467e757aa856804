package console

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// departed stands for the user of an end that is closed already. Of such a one the kernel
// tells root: a request that somebody sent and did not wait for would pass for root's.
const departed = -1

// peer is the user that the other end of a loopback connection belongs to, as the
// kernel knows it. It is not known where the kernel does not tell.
func peer(c net.Conn) (uid int, known bool) {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return 0, false
	}
	to, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return 0, false
	}
	// A socket of IPv6 can connect to an address of IPv4, and is in the other table then.
	if uid, known = owner("/proc/net/tcp", kernelAddress(from), kernelAddress(to)); known {
		return uid, true
	}
	return owner("/proc/net/tcp6", mappedAddress(from), mappedAddress(to))
}

// owner looks for a socket in a table of the kernel's.
func owner(table, local, remote string) (uid int, known bool) {
	file, err := os.Open(table)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// sl local_address rem_address st queues timer retransmits uid timeout inode ...
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[1] != local || fields[2] != remote {
			continue
		}
		if fields[9] == "0" {
			return departed, true
		}
		uid, err = strconv.Atoi(fields[7])
		return uid, err == nil
	}
	return 0, false
}

// kernelAddress is an IPv4 address as /proc/net/tcp has it: the word in the machine's
// own order, then the port.
func kernelAddress(a netip.AddrPort) string {
	ip := a.Addr().Unmap().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), a.Port())
}

// mappedAddress is an IPv4 address as /proc/net/tcp6 has it, four words of IPv6.
func mappedAddress(a netip.AddrPort) string {
	ip := a.Addr().As16() // of an IPv4 address, the mapped one
	word := func(n int) uint32 { return binary.NativeEndian.Uint32(ip[4*n:]) }
	return fmt.Sprintf("%08X%08X%08X%08X:%04X", word(0), word(1), word(2), word(3), a.Port())
}
