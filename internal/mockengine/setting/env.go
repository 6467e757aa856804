// Package setting reads the environment a container process was given. The
// shell around a program may have changed it, so nothing here asks the
// operating system: an Env is passed from hand to hand.
package setting

import (
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Env is a set of environment variables.
type Env map[string]string

// FromOS copies the environment of this process.
func FromOS() Env {
	env := Env{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// Clone returns a copy that may be changed.
func (e Env) Clone() Env { return maps.Clone(e) }

// String returns the first non-empty variable of names, or byDefault.
func (e Env) String(byDefault string, names ...string) string {
	for _, name := range names {
		if v := e[name]; v != "" {
			return v
		}
	}
	return byDefault
}

// Int returns a variable as integer; an empty one is byDefault.
func (e Env) Int(name string, byDefault int) (int, error) {
	text := strings.TrimSpace(e[name])
	if text == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("environment %s=%q is not a whole number", name, text)
	}
	return n, nil
}

// Float returns a variable as number; an empty one is byDefault.
func (e Env) Float(name string, byDefault float64) (float64, error) {
	text := strings.TrimSpace(e[name])
	if text == "" {
		return byDefault, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("environment %s=%q is not a number", name, text)
	}
	return f, nil
}

// Bool reads a switch: "1", "true", "yes" and "on", in any case, are true.
func (e Env) Bool(name string, byDefault bool) bool {
	switch strings.ToLower(strings.TrimSpace(e[name])) {
	case "":
		return byDefault
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// Duration accepts "1m30s" and, like the runtime itself, bare seconds.
func (e Env) Duration(name string, byDefault time.Duration) (time.Duration, error) {
	text := strings.TrimSpace(e[name])
	if text == "" {
		return byDefault, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("environment %s=%q is neither seconds nor a duration", name, text)
	}
	return d, nil
}

// GPUs is how many the container has, 0 if nobody said.
func (e Env) GPUs() (int, error) { return e.Int("DYNAMO_GPUS", 0) }

// ListenHost is the address every listener of the process binds.
func (e Env) ListenHost() string { return e.String("0.0.0.0", "DYNAMO_LISTEN_HOST") }

// Listen is ListenHost with a port, ready for net.Listen.
func (e Env) Listen(port int) string {
	return net.JoinHostPort(e.ListenHost(), strconv.Itoa(port))
}

// AdvertiseHost is the address others reach this process under: the pod's, or
// loopback outside of pods.
func (e Env) AdvertiseHost() string {
	if host := e.String("", "DYNAMO_POD_IP", "POD_IP"); host != "" {
		return host
	}
	if host := e.ListenHost(); host != "0.0.0.0" {
		return host
	}
	return "127.0.0.1"
}
