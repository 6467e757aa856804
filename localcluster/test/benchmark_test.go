package test

import (
	"bufio"
	"fmt"
	"os"
	"testing"
)

// BenchmarkMemory reports what an idle cluster of four nodes occupies; shared pages are counted once.
func BenchmarkMemory(b *testing.B) {
	c := sharedCluster(b)
	var total float64
	for b.Loop() {
		total = float64(pss(b, c.state(b).SupervisorPID))
		for _, p := range c.components(b) {
			total += float64(pss(b, p.PID))
		}
	}
	b.ReportMetric(total/1024, "MiB-PSS")
	b.ReportMetric(0, "ns/op")
}

// pss returns the proportional set size of a process in KiB.
func pss(b *testing.B, pid int) (kilobytes int) {
	b.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if n, _ := fmt.Sscanf(lines.Text(), "Pss: %d kB", &kilobytes); n == 1 {
			return kilobytes
		}
	}
	b.Fatalf("no Pss of process %d", pid)
	return 0
}

// BenchmarkUp reports how long it takes from nothing to a ready cluster of four nodes.
func BenchmarkUp(b *testing.B) {
	c := &localCluster{dir: newFolder(b) + "/c"}
	for b.Loop() {
		c.must(b, "up", "--detach", "--nodes=4")
		b.StopTimer()
		c.must(b, "down", "--delete")
		b.StartTimer()
	}
}
