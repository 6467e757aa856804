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

// peer is the user that the other end of a loopback connection belongs to, as the
// kernel knows it. It is not known of IPv6 or where the kernel does not tell.
func peer(c net.Conn) (uid int, known bool) {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return 0, false
	}
	to, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return 0, false
	}
	file, err := os.Open("/proc/net/tcp")
	if err != nil {
		return 0, false
	}
	defer file.Close()
	local, remote := kernelAddress(from), kernelAddress(to)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// sl local_address rem_address st queues timer retransmits uid ...
		fields := strings.Fields(lines.Text())
		if len(fields) > 7 && fields[1] == local && fields[2] == remote {
			uid, err = strconv.Atoi(fields[7])
			return uid, err == nil
		}
	}
	return 0, false
}

// kernelAddress is an IPv4 address as /proc/net/tcp has it: the word in the machine's
// own order, then the port.
func kernelAddress(a netip.AddrPort) string {
	ip := a.Addr().Unmap().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), a.Port())
}
