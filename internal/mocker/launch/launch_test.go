package launch

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// recorder notes the programs a shell starts instead of playing them.
type recorder struct {
	mu       sync.Mutex
	programs []Program
	slept    []time.Duration
	status   int
}

func (r *recorder) shell() Shell {
	return Shell{
		Log: slog.New(slog.DiscardHandler),
		Run: func(_ context.Context, p Program, _ Streams) int {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.programs = append(r.programs, p)
			return r.status
		},
		Wait: func(_ context.Context, d time.Duration) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.slept = append(r.slept, d)
			return nil
		},
	}
}

func (r *recorder) summary() []string {
	var out []string
	for _, p := range r.programs {
		out = append(out, strings.TrimSpace(string(p.Kind)+" "+p.Name+" "+strings.Join(p.Args, " ")))
	}
	return out
}

func TestPrograms(t *testing.T) {
	env := podenv.Env{
		"MODEL_PATH": "/models/q", "HOME": "/root", "LWS_LEADER_ADDRESS": "g-0.g.ns", "LWS_WORKER_INDEX": "1",
		"GROVE_PCLQ_POD_INDEX": "0", "JSON": `{"a": 1}`,
	}
	cases := map[string]struct {
		words []string
		env   podenv.Env
		want  []string
	}{
		"exec form":                                  {words: []string{"python3", "-m", "dynamo.vllm", "--model", "m"}, want: []string{"worker dynamo.vllm --model m"}},
		"any python":                                 {words: []string{"/opt/venv/bin/python3.11", "-u", "-m", "dynamo.sglang"}, want: []string{"worker dynamo.sglang"}},
		"frontend":                                   {words: []string{"python", "-m", "dynamo.frontend", "--http-port", "8000"}, want: []string{"frontend dynamo.frontend --http-port 8000"}},
		"planner by its bare name":                   {words: []string{"python3", "-m", "planner_sla", "--backend=vllm"}, want: []string{"planner planner_sla --backend=vllm"}},
		"planner by its module":                      {words: []string{"python3", "-m", "dynamo.planner.planner_sla"}, want: []string{"planner dynamo.planner.planner_sla"}},
		"routers":                                    {words: []string{"sh", "-c", "python -m dynamo.router; python -m dynamo.global_router"}, want: []string{"router dynamo.router", "global-router dynamo.global_router"}},
		"a component the mock does not know":         {words: []string{"python3", "-m", "dynamo.foo"}, want: []string{"script dynamo.foo"}},
		"a user's script":                            {words: []string{"/bin/sh", "-c", "python3 components/worker.py --model m"}, want: []string{"script worker.py --model m"}},
		"the endpoint picker by its path":            {words: []string{"/epp", "-v", "4"}, want: []string{"endpoint-picker epp -v 4"}},
		"an entrypoint with args only":               {words: []string{"-pool-name", "p"}, env: podenv.Env{"DYN_COMPONENT": "epp"}, want: []string{"endpoint-picker epp -pool-name p"}},
		"nothing at all for a frontend":              {env: podenv.Env{"DYN_COMPONENT": "frontend"}, want: []string{"frontend dynamo.frontend"}},
		"shell variables are expanded":               {words: []string{"/bin/sh", "-c", `python3 -m dynamo.vllm --model "$MODEL_PATH" --c "$JSON"`}, want: []string{`worker dynamo.vllm --model /models/q --c {"a": 1}`}},
		"exec form variables are not":                {words: []string{"python3", "-m", "dynamo.vllm", "--model", "$MODEL_PATH"}, want: []string{"worker dynamo.vllm --model $MODEL_PATH"}},
		"pipes and tee":                              {words: []string{"bash", "-lc", "python3 -m dynamo.vllm --model m 2>&1 | tee /tmp/l"}, want: []string{"worker dynamo.vllm --model m"}},
		"set-up before exec, nothing after":          {words: []string{"/bin/sh", "-c", "export A=b:$HOME\n/sbin/ldconfig\nnvidia-smi\nexec python3 -m dynamo.sglang --a $A\necho never"}, want: []string{"worker dynamo.sglang --a b:/root"}},
		"ray head, then the engine":                  {words: []string{"/bin/sh", "-c", "ray start --head --port=6379 && python3 -m dynamo.vllm --model m"}, want: []string{"ray-head ray start --head --port=6379", "worker dynamo.vllm --model m"}},
		"ray worker blocks":                          {words: []string{"/bin/sh", "-c", "ray start --address=$LWS_LEADER_ADDRESS:6379 --block"}, want: []string{"ray-node ray start --address=g-0.g.ns:6379 --block"}},
		"rank arithmetic":                            {words: []string{"sh", "-c", "exec python3 -m dynamo.vllm --r $(( 4 * $((GROVE_PCLQ_POD_INDEX + 1)) ))"}, want: []string{"worker dynamo.vllm --r 4"}},
		"mpirun with a launcher":                     {words: []string{"/bin/sh", "-c", `mpirun --allow-run-as-root -n 8 -H $LWS_LEADER_ADDRESS,$(echo "$LWS_LEADER_ADDRESS" | sed 's/\./-1\./') --mca pml ob1 --mca plm_rsh_args "-p 2222" -x HOME bash -c 'trtllm-llmapi-launch python3 -m dynamo.trtllm --model-path m'`}, want: []string{"worker dynamo.trtllm --model-path m"}},
		"sshd":                                       {words: []string{"/bin/sh", "-c", "mkdir -p ~/.ssh && ssh-keygen -t rsa -N '' && /usr/sbin/sshd -D -f ~/.ssh/sshd_config"}, want: []string{"ssh-daemon sshd -D -f /root/.ssh/sshd_config"}},
		"a condition decides":                        {words: []string{"sh", "-c", `if [ "$LWS_WORKER_INDEX" = 0 ]; then python3 -m dynamo.vllm; else python3 -m dynamo.sglang; fi`}, want: []string{"worker dynamo.sglang"}},
		"env before the program":                     {words: []string{"env", "A=b", "python3", "-m", "dynamo.vllm"}, want: []string{"worker dynamo.vllm"}},
		"background and wait":                        {words: []string{"sh", "-c", "python3 -m dynamo.vllm & wait"}, want: []string{"worker dynamo.vllm"}},
		"an unknown program of the runtime's":        {words: []string{"/opt/server", "-x"}, env: podenv.Env{"DYNAMO_CONTAINER_IMAGE": "r/vllm-runtime:1"}, want: []string{"idle /opt/server -x"}},
		"a here-document feeds a shell-less program": {words: []string{"sh", "-c", "cat <<E >/tmp/x\na\nE\npython3 -m dynamo.mocker"}, want: []string{"worker dynamo.mocker"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all := env.Clone()
			maps.Copy(all, c.env)
			r := &recorder{}
			r.shell().Exec(t.Context(), c.words, all, Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
			if diff := cmp.Diff(c.want, r.summary()); diff != "" {
				t.Errorf("programs started (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		script string
		image  string
		engine int // status of programs of the runtime
		want   int
		prints string
	}{
		"sleep then exit":                          {script: "sleep 1; exit 3", want: 3},
		"the last command's status is the shell's": {script: "true; false", want: 1},
		"and stops at a failure":                   {script: "false && echo no; echo $?", prints: "1\n"},
		"or goes on":                               {script: "false || echo yes", prints: "yes\n"},
		"set -e ends at a failure":                 {script: "set -e; false; echo no", want: 1},
		"set -e forgives conditions":               {script: "set -e; if false; then echo no; fi; false || true; echo yes", prints: "yes\n"},
		"an unknown command is not found":          {script: "nosuch", want: 127},
		"an unknown command may be followed":       {script: "nosuch; exit 4", image: "vllm-runtime", want: 4},
		"the engine's status is the container's":   {script: "python3 -m dynamo.vllm", engine: 1, want: 1},
		"a pipe hides it":                          {script: "python3 -m dynamo.vllm | tee /tmp/l", engine: 1},
		"pipefail shows it":                        {script: "set -o pipefail; python3 -m dynamo.vllm | tee /tmp/l", engine: 5, want: 5},
		"a profiler is not played":                 {script: "python3 -m benchmarks.profiler.profile_sla", image: "vllm-runtime", want: 1},
		"python code prepares":                     {script: "python3 -c 'import torch' && python3 -m pip install x", image: "vllm-runtime"},
		"bad syntax":                               {script: "if true", want: 2},
		"assignments last":                         {script: "A=1; B=$A; A=2 true; echo $A$B", prints: "11\n"},
		"a subshell keeps its variables":           {script: "A=1; (A=2; exit 7); echo $?$A", prints: "71\n"},
		"loops":                                    {script: "for i in 1 2 3; do if [ $i -eq 2 ]; then continue; fi; echo $i; done; i=0; while [ $i -lt 2 ]; do i=$((i+1)); done; echo $i", prints: "1\n3\n2\n"},
		"case":                                     {script: "case abc in x) echo x;; a*) echo a;; esac", prints: "a\n"},
		"redirections to files write nothing":      {script: "echo no > /tmp/f; echo err >&2; echo yes 2>/dev/null", prints: "yes\n"},
		"output becomes a value":                   {script: `X=$(printf '%s-%s\n' a b); echo "<$X>"`, prints: "<a-b>\n"},
		"eval":                                     {script: "eval 'A=5; echo $A'", prints: "5\n"},
		"positional parameters":                    {script: "set -- a b; echo $# $2", prints: "2 b\n"},
		"functions and their parameters":           {script: "f() { echo $1; return 3; }; f a; echo $?", prints: "a\n3\n"},
		"options beyond those that matter":         {script: "set -Eeuo pipefail -o history; echo $UNSET; false | true; echo no", prints: "\n", want: 1},
		"other descriptors are nobody's":           {script: "exec 3>&1 4</dev/null; echo a >&3; echo b <&4", prints: "a\nb\n"},
		"any job's end is that of all":             {script: "A=1; (sleep 1; echo a) & wait -n; echo b", prints: "a\nb\n"},
		"escapes in values":                        {script: `A=a\ \$b\\c; echo "$A"; export B=\"x\"; echo $B; case a\*b in a\*b) echo y;; esac`, prints: "a $b\\c\n\"x\"\ny\n"},
		"what a shell finds is there":              {script: "command -v python3 && type curl && command echo found", prints: "found\n"},
		"a shell's commands by their path":         {script: "/bin/echo a; nice -n 5 printf b; /bin/false || /usr/bin/test -n c && env X=1 echo d", prints: "a\nbd\n"},
		"exec of a shell's command":                {script: "exec echo a; echo no", prints: "a\n"},
		"nothing is looked up on the host":         {script: "cd /nosuch && . ./env.sh && trap 'echo no' TERM EXIT && ulimit -n 5 && umask 0 && echo /*", prints: "/*\n"},
		"only exports reach another shell":         {script: "A=1; export B=2; sh -ec 'echo $A$B$1; false; echo no' sh 3; echo $?", prints: "23\n1\n"},
		"arrays, and words quoted anew":            {script: `a=(x "y z"); a+=(w); printf '%q ' cmd "${a[@]}"; echo ${#a[@]}`, prints: "cmd x 'y z' w 3\n"},
		"jq tells by its status":                   {script: `echo '{"status":"healthy"}' | jq -e '.status == "healthy"' >/dev/null; echo $?; echo '{"status":"x"}' | jq -e '.status == "healthy"' >/dev/null; echo $?`, prints: "0\n1\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := &recorder{status: c.engine}
			var out bytes.Buffer
			env := podenv.Env{"DYNAMO_CONTAINER_IMAGE": c.image}
			got := r.shell().Exec(t.Context(), []string{"sh", "-c", c.script}, env, Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard})
			if got != c.want {
				t.Errorf("status of %q = %d, want %d", c.script, got, c.want)
			}
			if diff := cmp.Diff(c.prints, out.String()); diff != "" {
				t.Errorf("output of %q (-want +got):\n%s", c.script, diff)
			}
		})
	}
}

func TestSleepKeepsTheUnit(t *testing.T) {
	r := &recorder{}
	r.shell().Exec(t.Context(), []string{"sh", "-c", "sleep 1.5; sleep 2m 1; sleep infinity; tail -f /dev/null"}, nil, Streams{Out: io.Discard, Err: io.Discard})
	want := []time.Duration{1500 * time.Millisecond, 121 * time.Second, forever, forever}
	if diff := cmp.Diff(want, r.slept); diff != "" {
		t.Errorf("slept (-want +got):\n%s", diff)
	}
}

func TestBlockingCommandsEndWithTheContainer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	shell := (&recorder{}).shell()
	shell.Wait = nil
	go func() {
		done <- shell.Exec(ctx, []string{"sh", "-c", "sleep infinity; echo never"}, nil, Streams{Out: io.Discard, Err: io.Discard})
	}()
	cancel()
	select {
	case status := <-done:
		if status != statusTerminated {
			t.Errorf("status = %d, want %d", status, statusTerminated)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("sleep infinity did not end")
	}
}

func TestProgramsGetTheShellsEnvironment(t *testing.T) {
	r := &recorder{}
	env := podenv.Env{"KEEP": "1", "CHANGE": "old"}
	r.shell().Exec(t.Context(), []string{"sh", "-c", "LOCAL=x; export NEW=n; CHANGE=c; ONE=1 python3 -m dynamo.vllm; python3 -m dynamo.vllm"}, env, Streams{Out: io.Discard, Err: io.Discard})
	if len(r.programs) != 2 {
		t.Fatalf("%d programs started, want 2", len(r.programs))
	}
	want := podenv.Env{"KEEP": "1", "CHANGE": "c", "NEW": "n"}
	if diff := cmp.Diff(want, r.programs[1].Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	want["ONE"] = "1"
	if diff := cmp.Diff(want, r.programs[0].Env); diff != "" {
		t.Errorf("environment with an assignment (-want +got):\n%s", diff)
	}
}
