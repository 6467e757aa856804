package engine

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

const sshPort = 2222

// CountsGPUs reports whether an engine is launched across nodes by how many GPUs
// each has.
func CountsGPUs(e graph.Engine) bool { return e == graph.EngineVLLM || e == graph.EngineTRTLLM }

// trtllm spans nodes by MPI: workers run an SSH server, the leader starts one
// process per GPU of the group on them.
func trtllm(s Spec) (Container, error) {
	if s.Group.Position == Alone {
		return Container{Command: s.Command, Args: s.Args}, nil
	}
	if s.GPUs == 0 {
		return Container{}, invalid("TensorRT-LLM on %d nodes needs resources.limits.gpu to know how many processes to start", s.Group.Nodes)
	}
	l := Container{
		Command: Shell(),
		Joined:  true,
		// Without full host names MPI takes all nodes of a group for one.
		Env: []corev1.EnvVar{{Name: "OMPI_MCA_orte_keep_fqdn_hostnames", Value: "1"}},
		Volumes: []corev1.Volume{{Name: s.SSHSecret, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: s.SSHSecret, DefaultMode: new(int32(0o644))},
		}}},
		Mounts: []corev1.VolumeMount{{Name: s.SSHSecret, MountPath: "/ssh-pk", ReadOnly: true}},
	}
	rules := contract.Of(s.Contract).MPI
	steps := leaderSteps(s, l.Env, rules)
	if s.Group.Position == Worker {
		steps = workerSteps(rules)
		l.NoProbes = true
		l.Readiness = &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(sshPort)}},
			InitialDelaySeconds: 20, PeriodSeconds: 20, TimeoutSeconds: 5, FailureThreshold: 10,
		}
	}
	l.Args = []string{strings.Join(steps, " && ")}
	return l, nil
}

// keySteps put the group's key where ssh looks for it.
func keySteps(r contract.MPI) []string {
	ssh := r.Home + "/.ssh/"
	return []string{
		"ls -la /ssh-pk/",
		"cp /ssh-pk/private.key " + ssh + "id_rsa",
		"cp /ssh-pk/private.key.pub " + ssh + "id_rsa.pub",
		"cp /ssh-pk/private.key.pub " + ssh + "authorized_keys",
		"chmod 600 " + ssh + "id_rsa " + ssh + "authorized_keys",
		"chmod 644 " + r.Public,
		`printf 'Host *\nIdentityFile ` + r.HomeQuoted + `/.ssh/id_rsa\nStrictHostKeyChecking no\nPort 2222\n' > ` + ssh + "config",
	}
}

func leaderSteps(s Spec, added []corev1.EnvVar, r contract.MPI) []string {
	steps := append([]string{"mkdir -p " + r.Home + "/.ssh"}, keySteps(r)...)
	if s.Group.Addresses.Resolve {
		steps = append(steps, waitForWorkers(s.Group))
	}
	return append(steps, mpirun(s, added, r))
}

func workerSteps(r contract.MPI) []string {
	ssh, quoted := r.Home+"/.ssh", r.HomeQuoted+"/.ssh"
	steps := append([]string{"mkdir -p " + ssh + " " + ssh + "/host_keys " + ssh + "/run"}, keySteps(r)...)
	var config strings.Builder
	config.WriteString(`Port 2222\n`)
	for _, kind := range []string{"rsa", "ecdsa", "ed25519"} {
		key := "/host_keys/ssh_host_" + kind + "_key"
		steps = append(steps, "ssh-keygen -t "+kind+" -f "+ssh+key+" -N ''")
		config.WriteString("HostKey " + quoted + key + `\n`)
	}
	config.WriteString("PidFile " + quoted + `/run/sshd.pid\n` + r.SSHServer +
		`PermitRootLogin yes\nPasswordAuthentication no\nPubkeyAuthentication yes\nAuthorizedKeysFile ` + quoted + `/authorized_keys\n`)
	return append(steps, "printf '"+config.String()+"' > "+ssh+"/sshd_config", "/usr/sbin/sshd -D -f "+ssh+"/sshd_config")
}

// waitForWorkers holds the leader back until every worker has a name, five
// minutes at the most. Braces keep it one step of the chain, so that a step
// before it that fails still fails the whole.
func waitForWorkers(g Group) string {
	return `{ limit=$(($(date +%s) + 300)); for worker in ` + strings.Join(workers(g), " ") + `; do ` +
		`until getent hosts "$worker" >/dev/null 2>&1; do ` +
		`if [ "$(date +%s)" -gt "$limit" ]; then echo "no address for $worker after 300 s" >&2; exit 1; fi; ` +
		`echo "waiting for the address of $worker"; sleep 2; done; done; }`
}

func workers(g Group) []string {
	var hosts []string
	for i := 1; i < g.Nodes; i++ {
		hosts = append(hosts, g.Addresses.WorkerShell(i))
	}
	return hosts
}

func mpirun(s Spec, added []corev1.EnvVar, r contract.MPI) string {
	hosts := append([]string{s.Group.Addresses.Leader(true)}, workers(s.Group)...)
	return fmt.Sprintf(`mpirun %s --oversubscribe -n %d -H %s --mca pml ob1 --mca plm_rsh_args "-p %d -o StrictHostKeyChecking=no -i %s/.ssh/id_rsa" %s bash -c %s`,
		r.AsRoot, s.Group.Nodes*s.GPUs, strings.Join(hosts, ","), sshPort, r.Home, exported(slices.Concat(s.Env, added), r), quoteScript(launched(s)))
}

// exported lists the variables that MPI carries to the other nodes: those of
// the container, and those that images bring.
func exported(env []corev1.EnvVar, r contract.MPI) string {
	all := slices.Clone(r.Exported)
	for _, v := range env {
		all = append(all, v.Name)
	}
	slices.Sort(all)
	return "-x " + strings.Join(slices.Compact(all), " -x ")
}

// launcher makes one process of each MPI rank, of which the first serves.
const launcher = "trtllm-llmapi-launch "

// launched is the user's command under the launcher, as one line for a shell.
// In a script the launcher stands before the engine, not before what prepares
// for it.
func launched(s Spec) string {
	words := slices.Concat(s.Command, s.Args)
	at := script(words)
	if at < 0 {
		return launcher + commandline.Join(words)
	}
	text, before := strings.Join(words[at:], " "), 0
	if found := launchesIn(graph.EngineTRTLLM, text); len(found) > 0 {
		before = found[0].start
	}
	return text[:before] + launcher + text[before:]
}

// quoteScript makes one word of a script, whatever quotes it holds.
func quoteScript(script string) string {
	return "'" + strings.ReplaceAll(script, "'", `'\''`) + "'"
}
