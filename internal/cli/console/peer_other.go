//go:build !linux

package console

import "net"

// peer is known on Linux alone; elsewhere the cookie is what tells users apart.
func peer(net.Conn) (uid int, known bool) { return 0, false }
