package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/environ"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/mount"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/process"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/program"
)

const (
	tokenMount = "/var/run/secrets/kubernetes.io/serviceaccount"
	// keptLogs is how many logs of former runs stay; kubectl can ask for one.
	keptLogs = 3
)

// launch is a run of a container that is ready to begin.
type launch struct {
	spec             corev1.Container
	number           int32
	program          program.Program
	process          process.Spec
	faults           faults
	runsToCompletion bool // nobody plays it, and the pod waits for its end
	logPath          string
	lastWordsPath    string // where the process may leave a termination message
}

// create makes the next run ready, and waits for what it lacks; false if the
// pod stops meanwhile.
func (c *container) create(stop context.Context) (*launch, bool) {
	if !c.pull(stop) {
		return nil, false
	}
	var told string
	for stop.Err() == nil {
		heard := c.w.content.heard()
		l, err := c.dress(stop)
		if err == nil {
			return l, true
		}
		if err.Error() != told {
			told = err.Error()
			c.w.event(c.spec(c.w.object()), corev1.EventTypeWarning, "Failed", "Error: %s", told)
			c.update(func(cs *containerStatus) {
				c.retire(cs)
				cs.State = waiting("CreateContainerConfigError", told)
			})
		}
		select {
		case <-heard:
		case <-stop.Done():
		case <-time.After(again):
		}
	}
	return nil, false
}

// dress gives the run its arguments, environment and folders.
func (c *container) dress(ctx context.Context) (*launch, error) {
	w := c.w
	pod := w.located()
	spec := c.spec(pod)
	env, err := environ.Build(ctx, pod, spec, w.host.Allocatable, w.host.Cluster)
	if err != nil {
		return nil, err
	}
	table, err := c.mounts(pod, spec, env)
	if err != nil {
		return nil, err
	}
	number := c.next()
	l := &launch{
		spec: *spec, number: number,
		program:       program.For(spec.Image, env.ExpandAll(spec.Command), env.ExpandAll(spec.Args)),
		logPath:       logPath(w.dir, c.name, number),
		lastWordsPath: c.lastWordsPath(),
	}
	l.faults, _ = faultsOf(pod, c.name)
	if !l.program.Played() {
		l.runsToCompletion = c.role.init || !c.role.sidecar && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
		end := "it idles"
		if l.runsToCompletion {
			end = "it ends at once, with success"
		}
		w.warn("image/"+c.name, spec, "UnknownImage", "No program here plays image %s: %s", spec.Image, end)
	}
	work := filepath.Join(c.dir(), "work")
	if here := table.Rewrite(spec.WorkingDir); here != spec.WorkingDir {
		work = here
	}
	if err := os.MkdirAll(work, 0o777); err != nil {
		return nil, fmt.Errorf("make a folder for container %s: %w", c.name, err)
	}
	_ = os.Remove(l.lastWordsPath) // of the run before
	_ = os.Remove(logPath(w.dir, c.name, number-keptLogs))

	l.process = process.Spec{
		Path: filepath.Join(w.host.BinDir, l.program.Binary),
		Args: table.RewriteAll(l.program.Args),
		Dir:  work,
	}
	l.process.Env, err = c.environment(pod, env, table, work)
	return l, err
}

func (c *container) mounts(pod *corev1.Pod, spec *corev1.Container, env *environ.Environment) (mount.Table, error) {
	c.w.laid.Lock()
	defer c.w.laid.Unlock()
	mounts, err := c.w.volumes.Mounts(pod, spec, env, filepath.Join(c.dir(), "copies"))
	if err != nil {
		return nil, err
	}
	if spec.TerminationMessagePath != "" {
		mounts = append(mounts, mount.Mount{Path: spec.TerminationMessagePath, Source: c.lastWordsPath()})
	}
	return mount.NewTable(mounts), nil
}

// environment is the pod's own variables between those a pod may replace and
// those it may not: a listener on another address would not be found, and what a
// process says about files it says to others, whose files lie elsewhere.
func (c *container) environment(pod *corev1.Pod, own *environ.Environment, table mount.Table, home string) ([]string, error) {
	host := c.w.host
	server, err := url.Parse(host.APIServerURL)
	if err != nil {
		return nil, fmt.Errorf("address of the API server %q: %w", host.APIServerURL, err)
	}
	var env []string
	given := func(name, value string) {
		if !own.Has(name) {
			env = append(env, name+"="+value)
		}
	}
	given("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	given("HOSTNAME", pod.Name)
	given("HOME", home)
	for name, value := range c.w.deviceEnv(c.spec(pod)) {
		given(name, value)
	}
	given("KUBERNETES_SERVICE_HOST", server.Hostname())
	given("KUBERNETES_SERVICE_PORT", server.Port())
	if token, ok := table.Source(tokenMount); ok {
		path, err := c.writeKubeconfig(pod.Namespace, filepath.Join(token, "token"))
		if err != nil {
			return nil, err
		}
		given("KUBECONFIG", path)
	}
	back, err := json.Marshal(table.Back())
	if err != nil {
		return nil, fmt.Errorf("tell container %s its mounts: %w", c.name, err)
	}
	fixed := [][2]string{
		{"DYNAMO_LISTEN_HOST", c.w.Host()},
		{"DYNAMO_POD_IP", pod.Status.PodIP},
		{"DYNAMO_FORWARD_PROXY", host.ProxyURL},
		{"DYNAMO_CONTAINER_IMAGE", c.spec(pod).Image},
		{"DYNAMO_MOUNTS", string(back)},
	}
	for name, value := range own.All {
		env = append(env, name+"="+table.Rewrite(value))
	}
	for _, v := range fixed {
		env = append(env, v[0]+"="+v[1]) // the last one of a name counts
	}
	return env, nil
}

// writeKubeconfig is what lets a client find the API server, whose address
// inside a cluster does not exist here.
func (c *container) writeKubeconfig(namespace, tokenFile string) (string, error) {
	const name = "pod"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.w.host.APIServerURL, CertificateAuthority: c.w.host.CAFile}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: tokenFile}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	path := filepath.Join(c.dir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("write the kubeconfig of container %s: %w", c.name, err)
	}
	return path, nil
}

func (c *container) lastWordsPath() string { return filepath.Join(c.dir(), "termination-log") }
