package search

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

var measure = flag.Bool("measure", false, "time the requests, each of which must take less than 50 ms of one core")

// busy is the time that this thread has computed: a busy machine does not count.
func busy(t testing.TB) time.Duration {
	const clock = 3 // CLOCK_THREAD_CPUTIME_ID
	var now syscall.Timespec
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&now)), 0); err != 0 {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// took is what a request costs one core. Neighbours on the same core slow even
// what is computed, so the best of three is nearest to the truth.
func took(t testing.TB, p Problem) time.Duration {
	least := time.Hour
	for range 3 {
		begin := busy(t)
		_, _ = Solve(p)
		least = min(least, busy(t)-begin)
		if least < 5*time.Millisecond {
			break
		}
	}
	return least
}

// BenchmarkSolve answers random requests on one core.
func BenchmarkSolve(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	chance := rand.New(rand.NewPCG(6, 2026))
	var times []time.Duration
	for b.Loop() {
		times = append(times, took(b, random(chance)))
	}
	median, high, most := spreadOf(times)
	b.ReportMetric(median, "p50-cpu-ms")
	b.ReportMetric(high, "p99-cpu-ms")
	b.ReportMetric(most, "max-cpu-ms")
}

// spreadOf gives the median, the 99th percentile and the longest, in
// milliseconds.
func spreadOf(times []time.Duration) (median, high, most float64) {
	slices.Sort(times)
	at := func(share float64) float64 {
		return float64(times[int(share*float64(len(times)-1))].Microseconds()) / 1000
	}
	return at(0.5), at(0.99), at(1)
}

func TestARequestTakesLessThan50Milliseconds(t *testing.T) {
	if !*measure {
		t.Skip("timed only with -measure")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	chance := rand.New(rand.NewPCG(6, 2026))
	times := make([]time.Duration, *requests)
	for i := range times {
		times[i] = took(t, random(chance))
	}
	median, high, most := spreadOf(times)
	t.Logf("%d requests on one core: median %.2f ms, 99 %% within %.1f ms, longest %.1f ms", len(times), median, high, most)
	if most >= 50 {
		t.Errorf("a request took %.1f ms", most)
	}
}
