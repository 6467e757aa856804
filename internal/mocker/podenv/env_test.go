package podenv

import (
	"net"
	"strings"
	"testing"
	"time"
)

func TestGenerations(t *testing.T) {
	for name, c := range map[string]struct {
		env          Env
		generational bool
		namespace    string
	}{
		"before 1.x":            {Env{}, false, "ns-g"},
		"1.x with a suffix":     {Env{"DYN_NAMESPACE_WORKER_SUFFIX": "1f"}, true, "ns-g-1f"},
		"1.x without a suffix":  {Env{"DYN_FORWARDPASS_METRIC_PORT": "20380"}, true, "ns-g"},
		"a suffix that is none": {Env{"DYN_NAMESPACE_WORKER_SUFFIX": ""}, false, "ns-g"},
	} {
		if got := c.env.Generational(); got != c.generational {
			t.Errorf("%s: generational %v", name, got)
		}
		if got := c.env.InGeneration("ns-g"); got != c.namespace {
			t.Errorf("%s: namespace %q, want %q", name, got, c.namespace)
		}
	}
}

func TestPathsAreThoseOfTheContainer(t *testing.T) {
	env := Env{"DYNAMO_MOUNTS": `{"/node-1/models":"/models","/node-1/models/cache":"/root/.cache","/pods/u/volumes/data":"/data"}`}
	for name, c := range map[string]struct{ text, want string }{
		"a folder":                     {"/node-1/models", "/models"},
		"what lies in one":             {"/node-1/models/a/b", "/models/a/b"},
		"the innermost one counts":     {"/node-1/models/cache/hub", "/root/.cache/hub"},
		"another one of that name":     {"/node-1/models-old/a", "/node-1/models-old/a"},
		"a file that was in the image": {"/opt/models/a", "/opt/models/a"},
		"a model's id":                 {"org/model", "org/model"},
		"nothing":                      {"", ""},
	} {
		if got, err := env.ContainerPath(c.text); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if got, err := (Env{}).ContainerPath("/models"); err != nil || got != "/models" {
		t.Errorf("in a container: %q, %v", got, err)
	}
	if _, err := (Env{"DYNAMO_MOUNTS": "/models"}).ContainerPath("/models"); err == nil {
		t.Error("mounts that cannot be read were taken for none")
	}
}

func TestDurationsAreSecondsOrWords(t *testing.T) {
	for text, want := range map[string]time.Duration{"": time.Minute, "5": 5 * time.Second, "0.5": 500 * time.Millisecond, "1m30s": 90 * time.Second} {
		if got, err := (Env{"D": text}).Duration("D", time.Minute); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	if _, err := (Env{"D": "soon"}).Duration("D", 0); err == nil {
		t.Error("a word was taken for a duration")
	}
}

func TestAdvertisedHost(t *testing.T) {
	for name, c := range map[string]struct {
		env  Env
		want string
	}{
		"the pod's address on paper first":       {Env{"DYNAMO_POD_IP": "10.16.0.2", "DYNAMO_LISTEN_HOST": "127.16.0.2"}, "10.16.0.2"},
		"then the address listened on":           {Env{"DYNAMO_LISTEN_HOST": "127.16.0.2"}, "127.16.0.2"},
		"loopback on a machine without pods":     {Env{}, "127.0.0.1"},
		"the local cluster's pods are loopback":  {Env{"DYNAMO_LISTEN_HOST": "127.16.0.2", "KUBERNETES_SERVICE_HOST": "10.16.0.1"}, "127.16.0.2"},
		"in a cluster what the pod is told":      {Env{"POD_IP": "10.0.0.7", "KUBERNETES_SERVICE_HOST": "10.96.0.1"}, "10.0.0.7"},
		"in a cluster of IPv6 what it is told":   {Env{"POD_IP": "fd00::7", "KUBERNETES_SERVICE_HOST": "fd00::1"}, "fd00::7"},
		"in a cluster a name that it is told of": {Env{"POD_IP": "pod.example", "KUBERNETES_SERVICE_HOST": "10.96.0.1"}, "pod.example"},
	} {
		if got, err := c.env.AdvertiseHost(); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

// TestNoLoopbackInACluster asks this machine's interfaces; one without a network
// has to say so instead.
func TestNoLoopbackInACluster(t *testing.T) {
	for _, env := range []Env{
		{"KUBERNETES_SERVICE_HOST": "10.96.0.1"},
		{"KUBERNETES_SERVICE_HOST": "10.96.0.1", "POD_IP": "127.0.0.1"},
		{"KUBERNETES_SERVICE_HOST": "10.96.0.1", "POD_IP": "::1"},
	} {
		host, err := env.AdvertiseHost()
		if ip := net.ParseIP(host); err == nil && (ip == nil || ip.IsLoopback()) {
			t.Errorf("%v advertises %q", env, host)
		}
		if err != nil && !strings.Contains(err.Error(), "POD_IP") {
			t.Errorf("%v: %v", env, err)
		}
	}
}

func TestAddressOfThePodsInterface(t *testing.T) {
	for name, c := range map[string]struct {
		interfaces []string
		want       string
	}{
		"neither loopback nor link-local":   {[]string{"127.0.0.1/8", "169.254.1.1/16", "fe80::1/64", "10.0.3.4/24"}, "10.0.3.4"},
		"IPv4 first in a pod that has both": {[]string{"127.0.0.1/8", "::1/128", "fd00:1::4/64", "10.0.3.4/24"}, "10.0.3.4"},
		"IPv6 where there is nothing else":  {[]string{"::1/128", "fe80::1/64", "fd00:1::4/64", "fd00:1::5/64"}, "fd00:1::4"},
		"none on a pod without a network":   {[]string{"127.0.0.1/8", "::1/128"}, ""},
	} {
		var addresses []net.Addr
		for _, text := range c.interfaces {
			ip, network, err := net.ParseCIDR(text)
			if err != nil {
				t.Fatal(err)
			}
			addresses = append(addresses, &net.IPNet{IP: ip, Mask: network.Mask})
		}
		if got, found := podAddress(addresses); got != c.want || found != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, found, c.want)
		}
	}
}

func TestNumbersSayWhichVariableIsWrong(t *testing.T) {
	env := Env{"N": "x"}
	if _, err := env.Int("N", 0); err == nil {
		t.Error("Int accepted x")
	}
	if _, err := env.Float("N", 0); err == nil {
		t.Error("Float accepted x")
	}
	if n, err := env.Int("M", 3); err != nil || n != 3 {
		t.Errorf("default is %d, %v", n, err)
	}
	for text, want := range map[string]bool{"": true, "TRUE": true, "1": true, "no": false, "false": false} {
		if got := (Env{"B": text}).Bool("B", true); got != want {
			t.Errorf("Bool(%q) = %v, want %v", text, got, want)
		}
	}
}
