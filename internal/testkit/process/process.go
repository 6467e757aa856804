// Package process finds the processes of a local cluster, so that a test can
// end them as a crash would. It looks at processes of our own only: others
// cannot be read.
package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
)

// Of finds what runs a program of the cluster whose data lies in a folder:
// other clusters of this machine have the same ones.
func Of(folder, program string) ([]int, error) {
	return find(program, func(commandLine, _ string) bool {
		first, _, _ := strings.Cut(commandLine, "\x00")
		return filepath.Base(first) == program && strings.Contains(commandLine, folder)
	})
}

// InPod finds what plays a pod's main container. It knows its pod's UID, or a
// file in the pod's folder, which is named after that.
func InPod(pod types.UID) (int, error) {
	found, err := find("in pod "+string(pod), func(commandLine, environ string) bool {
		return strings.Contains("\x00"+environ, "\x00POD_UID="+string(pod)+"\x00") || strings.Contains(commandLine, "_"+string(pod)+"/")
	})
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// Kill ends a process the hard way.
func Kill(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %d: %w", pid, err)
	}
	return nil
}

func find(what string, matches func(commandLine, environ string) bool) ([]int, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, folder := range folders {
		commandLine, err := os.ReadFile(folder + "/cmdline")
		if err != nil || len(commandLine) == 0 {
			continue // ended meanwhile, or a kernel thread
		}
		environ, err := os.ReadFile(folder + "/environ")
		if err != nil || !matches(string(commandLine), string(environ)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			return nil, err
		}
		found = append(found, pid)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no process is %s", what)
	}
	return found, nil
}

// Resident is how many bytes of memory a process holds, the pages of its program included.
func Resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("process %d tells no VmRSS", pid)
}
