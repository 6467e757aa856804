package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// The test binary plays the programs: PLAY says which.
func TestMain(m *testing.M) {
	switch play := os.Getenv("PLAY"); {
	case play == "":
		os.Exit(m.Run())
	case play == "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case play == "sleep":
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case play == "agent":
		// An agent that starts a child, tells its number and waits to be killed.
		p, err := NewSpawner().Launch(Spec{Path: os.Args[0], Env: []string{"PLAY=sleep"}})
		if err != nil {
			panic(err)
		}
		fmt.Println(p.(*child).pid)
		time.Sleep(time.Hour)
	case strings.HasPrefix(play, "exit "):
		fmt.Fprintln(os.Stderr, "bye")
		code, _ := strconv.Atoi(strings.TrimPrefix(play, "exit "))
		os.Exit(code)
	}
}

func launch(t *testing.T, play string, out io.Writer) Process {
	t.Helper()
	p, err := NewSpawner().Launch(Spec{Path: os.Args[0], Env: []string{"PLAY=" + play}, Stdout: out, Stderr: out})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// launchReady returns once the program has said that it is ready for signals.
func launchReady(t *testing.T, play string) Process {
	t.Helper()
	r, w := io.Pipe()
	p := launch(t, play, w)
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return p
}

func TestExitCodes(t *testing.T) {
	var out bytes.Buffer
	for name, c := range map[string]struct {
		end  func() Process
		want int
	}{
		"success":                {func() Process { return launch(t, "exit 0", &out) }, 0},
		"the program's own code": {func() Process { return launch(t, "exit 3", &out) }, 3},
		"asked to end":           {func() Process { p := launchReady(t, "sleep"); p.Signal(syscall.SIGTERM); return p }, 143},
		"killed, as it does not listen": {func() Process {
			p := launchReady(t, "stubborn")
			p.Signal(syscall.SIGTERM)
			p.Signal(syscall.SIGKILL)
			return p
		}, 137},
		"an idle container asked":       {func() Process { p := Idle(); p.Signal(syscall.SIGTERM); return p }, 0},
		"an idle container killed":      {func() Process { p := Idle(); p.Signal(syscall.SIGKILL); return p }, 137},
		"a container with nothing":      {Ended, 0},
		"a slow start that was stopped": {func() Process { p := Later(time.Hour, nil); p.Signal(syscall.SIGTERM); return p }, 143},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.end()
			<-p.Done()
			if got := p.ExitCode(); got != c.want {
				t.Errorf("exit code %d, want %d", got, c.want)
			}
			p.Signal(syscall.SIGKILL) // after the end: nothing happens
		})
	}
}

func TestASlowStartIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		p := Later(20*time.Second, func() (Process, error) { return Ended(), nil })
		<-p.Done()
		if got := time.Since(begin); got != 20*time.Second {
			t.Errorf("ended after %v", got)
		}
	})
}

func TestChildrenDieWithAKilledAgent(t *testing.T) {
	agent := exec.Command(os.Args[0])
	agent.Env = []string{"PLAY=agent"}
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || zombie(pid) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("child %d outlived its agent", pid)
		}
	}
}

// zombie reports a dead process that nobody has waited for: in a container
// without an init, orphans stay so.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(stat, []byte(") Z "))
}
