package localenv

import "syscall"

// child is of its own process group, so that a Ctrl-C at the terminal reaches
// us first, and is told to stop when we die, however we die.
func child() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
