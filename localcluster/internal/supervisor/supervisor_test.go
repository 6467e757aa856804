package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
)

// The supervisor starts its own executable, so this test binary plays the programs, chosen by the name it is called as.
func TestMain(m *testing.M) {
	switch os.Args[0] {
	case "patient":
		fmt.Println("hello", os.Args[1:])
		terminate := make(chan os.Signal, 1)
		signal.Notify(terminate, syscall.SIGTERM)
		<-terminate
		os.Exit(0)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("deaf")
		sleep()
	case "parent": // supervises a patient program until it is killed
		s := New(clusterdir.Dir(os.Args[1]), os.Stderr)
		if err := s.Start(Program{Name: "patient"}); err != nil {
			panic(err)
		}
		fmt.Println("started")
		sleep()
	}
	os.Exit(m.Run())
}

// sleep ends by a signal only; the runtime's own signals interrupt a single pause.
func sleep() {
	for {
		syscall.Pause()
	}
}

func TestAKilledProgramComesBack(t *testing.T) {
	s, dir := newSupervisor(t)
	if err := s.Start(Program{Name: "patient", Args: []string{"a", "b"}, Grace: time.Second}); err != nil {
		t.Fatal(err)
	}
	greetings := func(want int) func() error {
		return func() error {
			log, err := os.ReadFile(dir.Log("patient"))
			if err == nil && strings.Count(string(log), "hello [a b]") != want {
				err = fmt.Errorf("log: %q", log)
			}
			return err
		}
	}
	eventually(t, greetings(1))
	first := record(t, dir)
	syscall.Kill(first.PID, syscall.SIGKILL)
	eventually(t, func() error {
		second := record(t, dir)
		if second.PID == 0 || second.PID == first.PID {
			return fmt.Errorf("process is still %d", second.PID)
		}
		if second.Restarts != 1 || second.LastExit != "signal: killed" {
			return fmt.Errorf("recorded %+v", second)
		}
		return nil
	})
	eventually(t, greetings(2))
	last := record(t, dir)
	s.Stop()
	if alive(last.PID) {
		t.Errorf("process %d outlives Stop", last.PID)
	}
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	s, dir := newSupervisor(t)
	if err := s.Start(Program{Name: "stubborn", Grace: 10 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	pid := record(t, dir).PID
	eventually(t, func() error {
		if log, _ := os.ReadFile(dir.Log("stubborn")); string(log) != "deaf\n" {
			return errors.New("not started yet")
		}
		return nil
	})
	s.Stop()
	if alive(pid) {
		t.Errorf("process %d outlives Stop", pid)
	}
}

func TestProgramsDieWithTheirSupervisor(t *testing.T) {
	_, dir := newSupervisor(t)
	parent := exec.Command("/proc/self/exe", string(dir))
	parent.Args[0] = "parent"
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, len("started"))); err != nil {
		t.Fatal(err)
	}
	pid := record(t, dir).PID
	parent.Process.Kill()
	parent.Wait()
	eventually(t, func() error {
		if alive(pid) {
			return fmt.Errorf("process %d is an orphan", pid)
		}
		return nil
	})
}

func TestAFullLogIsMovedAside(t *testing.T) {
	_, dir := newSupervisor(t)
	if err := os.WriteFile(dir.Log("x"), make([]byte, maxLogSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := openLog(dir.Log("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if info, err := log.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("new log: %v, %v", info, err)
	}
	if info, err := os.Stat(dir.Log("x") + ".1"); err != nil || info.Size() != maxLogSize+1 {
		t.Errorf("old log: %v, %v", info, err)
	}
}

func newSupervisor(t *testing.T) (*Supervisor, clusterdir.Dir) {
	t.Helper()
	dir := clusterdir.Dir(t.TempDir())
	if err := os.Mkdir(dir.Logs(), 0o700); err != nil {
		t.Fatal(err)
	}
	s := New(dir, t.Output())
	t.Cleanup(s.Stop)
	return s, dir
}

func record(t *testing.T, dir clusterdir.Dir) Record {
	t.Helper()
	records, err := ReadRecords(dir)
	if err != nil || len(records) != 1 {
		t.Fatalf("records: %v, %v", records, err)
	}
	return records[0]
}

// alive looks at the state too: an orphan that was killed stays as a zombie where nobody adopts it.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(fields, "Z")
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
