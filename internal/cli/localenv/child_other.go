//go:build !linux

package localenv

import "syscall"

// child has no guard outside Linux, where the local cluster runs.
func child() *syscall.SysProcAttr { return nil }
