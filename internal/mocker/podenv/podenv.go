// Package podenv reads the environment of a container's process. The shell around
// a program may have changed it, so nothing here asks the operating system: an Env
// is passed as a value.
package podenv

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
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

// Generational reports whether the operator has set the container up for a
// runtime of 1.x, whose workers come in generations that are told apart.
func (e Env) Generational() bool {
	return e["DYN_NAMESPACE_WORKER_SUFFIX"] != "" || e["DYN_FORWARDPASS_METRIC_PORT"] != ""
}

// InGeneration is the namespace in which a worker of this container registers:
// each generation of workers has one of its own, which begins with the graph's.
func (e Env) InGeneration(namespace string) string {
	if suffix := e["DYN_NAMESPACE_WORKER_SUFFIX"]; suffix != "" {
		return namespace + "-" + suffix
	}
	return namespace
}

// GPUs is how many the container has, 0 if nobody said.
func (e Env) GPUs() (int, error) { return e.Int("DYNAMO_GPUS", 0) }

// ContainerPath is what a container calls a path of this machine. Where pods are
// processes, a volume lies in a folder of its node or its pod, by which arguments
// were rewritten; DYNAMO_MOUNTS tells the mountPath of each such folder. What two
// pods compare, or users see, must be the same wherever they run.
func (e Env) ContainerPath(text string) (string, error) {
	told := e["DYNAMO_MOUNTS"]
	if told == "" || !strings.HasPrefix(text, "/") {
		return text, nil
	}
	var mounts map[string]string
	if err := json.Unmarshal([]byte(told), &mounts); err != nil {
		return text, fmt.Errorf("environment DYNAMO_MOUNTS=%q is not an object of paths: %w", told, err)
	}
	folder := ""
	for source := range mounts {
		if rest, below := strings.CutPrefix(text, source); below && (rest == "" || rest[0] == '/') && len(source) > len(folder) {
			folder = source
		}
	}
	return mounts[folder] + text[len(folder):], nil
}

// ListenHost is the address every listener of the process binds; empty means all
// of them, IPv4 and IPv6.
func (e Env) ListenHost() string { return e["DYNAMO_LISTEN_HOST"] }

// Listen is ListenHost with a port, ready for net.Listen.
func (e Env) Listen(port int) string {
	return net.JoinHostPort(e.ListenHost(), strconv.Itoa(port))
}

// InCluster reports whether the process runs in a pod that a kubelet started. The
// local cluster, whose pods are processes on loopback addresses, gives each of
// them the address to listen on.
func (e Env) InCluster() bool {
	return e["KUBERNETES_SERVICE_HOST"] != "" && e["DYNAMO_LISTEN_HOST"] == ""
}

// AdvertiseHost is the address others reach this process under: the pod's, or
// loopback outside of pods. Loopback is never the answer in a cluster, where it
// would lead every other pod to itself.
func (e Env) AdvertiseHost() (string, error) {
	told := e.String("", "DYNAMO_POD_IP", "POD_IP", "DYNAMO_LISTEN_HOST")
	if !e.InCluster() {
		return cmp.Or(told, "127.0.0.1"), nil
	}
	if ip, err := netip.ParseAddr(told); told != "" && (err != nil || !ip.IsLoopback()) {
		return told, nil
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("find the pod's address: %w", err)
	}
	host, found := podAddress(addresses)
	if !found {
		return "", fmt.Errorf("find the pod's address: none of %v can be reached from other pods; set POD_IP from status.podIP", addresses)
	}
	return host, nil
}

// podAddress is the first address of the pod's interfaces that others can reach,
// IPv4 before IPv6.
func podAddress(addresses []net.Addr) (string, bool) {
	var six string
	for _, address := range addresses {
		prefix, err := netip.ParsePrefix(address.String())
		if err != nil {
			continue // not an IP network
		}
		switch ip := prefix.Addr().Unmap(); {
		case !ip.IsGlobalUnicast(): // which leaves loopback and link-local out
		case ip.Is4():
			return ip.String(), true
		case six == "":
			six = ip.String()
		}
	}
	return six, six != ""
}
