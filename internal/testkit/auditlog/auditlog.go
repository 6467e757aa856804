// Package auditlog helps to read an API server's audit log while servers that
// write it are killed.
package auditlog

import "bytes"

// event is how each line begins.
var event = []byte(`{"kind":"Event","apiVersion":"audit.k8s.io/`)

// Whole is a line of the log without what stands before it of another: a server
// that was killed may have left a line without an end.
func Whole(line []byte) []byte {
	return line[max(0, bytes.LastIndex(line, event)):]
}
