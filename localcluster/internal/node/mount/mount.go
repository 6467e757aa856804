// Package mount turns paths of a container into paths of this machine.
//
// There are no mounts here: what a container would find under a mountPath lies
// somewhere in the pod's folder, and every mention of the mountPath in its
// arguments and environment is rewritten. The package is pure; it refuses to
// look inside files, and to guess at paths that no mount covers.
package mount

import (
	"path"
	"slices"
	"strings"
)

// Mount says where the content of one mountPath lies.
type Mount struct {
	Path   string // as the container says it
	Source string // where it is
}

// Table is the mounts of one container, longest path first.
type Table []Mount

// NewTable orders mounts so that the most specific one decides.
func NewTable(mounts []Mount) Table {
	var t Table
	for _, m := range mounts {
		m.Path = path.Clean(m.Path)
		// Everything is below /, also what must stay a path of the machine.
		if m.Path != "/" && m.Path != "." {
			t = append(t, m)
		}
	}
	slices.SortStableFunc(t, func(a, b Mount) int { return len(b.Path) - len(a.Path) })
	return t
}

// Source is where the content of a mountPath itself lies.
func (t Table) Source(mountPath string) (string, bool) {
	for _, m := range t {
		if m.Path == path.Clean(mountPath) {
			return m.Source, true
		}
	}
	return "", false
}

// Back maps where content lies to the mountPath that a container has for it. Of
// several for the same content the most specific counts.
func (t Table) Back() map[string]string {
	back := map[string]string{}
	for _, m := range t {
		if _, known := back[m.Source]; !known {
			back[m.Source] = m.Path
		}
	}
	return back
}

// Rewrite replaces every mountPath in s that begins and ends at a path
// boundary, so /data matches in --dir=/data/x and "a:/data" but not in
// /database, /old/data or http://host/data.
func (t Table) Rewrite(s string) string {
	if len(t) == 0 || !strings.Contains(s, "/") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '/' && beginsPath(s[:i]) {
			if m, ok := t.at(s[i:]); ok {
				out.WriteString(m.Source)
				i += len(m.Path)
				continue
			}
		}
		out.WriteByte(s[i])
		i++
	}
	return out.String()
}

// RewriteAll rewrites each string.
func (t Table) RewriteAll(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = t.Rewrite(s)
	}
	return out
}

func (t Table) at(s string) (Mount, bool) {
	for _, m := range t {
		if rest, ok := strings.CutPrefix(s, m.Path); ok && (rest == "" || !nameByte(rest[0])) {
			return m, true
		}
	}
	return Mount{}, false
}

// beginsPath reports whether a slash after this text starts an absolute path.
func beginsPath(before string) bool {
	if before == "" {
		return true
	}
	switch prev := before[len(before)-1]; {
	case strings.HasSuffix(before, "file://"):
		return true
	case nameByte(prev), prev == '/', prev == '}', prev == ')', prev == '$', prev == '~', prev == '*':
		return false
	}
	return true
}

func nameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-' || b == '.' || b >= 0x80
}
