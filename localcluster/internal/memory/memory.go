// Package memory reads from /proc what a process occupies.
package memory

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Usage is in bytes. Processes of one executable share its code, so PSS is what adds up.
type Usage struct{ RSS, PSS int64 }

// Of measures a process.
func Of(pid int) (Usage, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("measure process %d: %w", pid, err)
	}
	defer func() { _ = file.Close() }()
	var u Usage
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		into := map[string]*int64{"Rss": &u.RSS, "Pss": &u.PSS}[name]
		if into == nil {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("measure process %d: parse %q: %w", pid, lines.Text(), err)
		}
		*into = kilobytes << 10
	}
	return u, nil
}
