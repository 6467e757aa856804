// Package supervisor keeps a set of programs running, each as its own process and most of them of this binary, and
// records what it runs. It does not know what the programs are for, nor in which order they depend on each other.
package supervisor

import "time"

// Program is one process to keep alive.
type Program struct {
	Name string // what the binary is called as; also names the log file
	Path string // another executable; empty means this very binary
	Args []string
	Env  []string
	Dir  string // working directory; empty means that of the supervisor

	// Grace is how long the program may take to end after SIGTERM before it is killed.
	Grace time.Duration
}

// Record is what is known of a program from outside, as written for `status`.
type Record struct {
	Name     string    `json:"name"`
	PID      int       `json:"pid"` // 0 while it waits to be restarted
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since"`
	LastExit string    `json:"lastExit,omitempty"`
}
