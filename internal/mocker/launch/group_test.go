package launch

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

func TestGetentTellsWhatTheClusterKnows(t *testing.T) {
	for script, want := range map[string]string{
		"getent hosts known.ns >/dev/null; echo $?":       "0\n",
		"getent hosts ghost.ns >/dev/null 2>&1; echo $?":  "2\n",
		"getent hosts known.ns | sed 's/ .*//'":           "known.ns\n",
		"getent passwd root; echo $?":                     "0\n",
		"until getent hosts known.ns; do sleep 2; done":   "known.ns        known.ns\n",
		"getent hosts known.ns ghost.ns >/dev/null || :":  "",
		"getent hosts ghost.ns || echo waiting for ghost": "waiting for ghost\n",
	} {
		t.Run(script, func(t *testing.T) {
			shell := (&recorder{}).shell()
			shell.Resolves = func(_ context.Context, host string, _ podenv.Env) bool { return host == "known.ns" }
			var out bytes.Buffer
			shell.Exec(t.Context(), []string{"sh", "-c", script}, nil, Streams{Out: &out, Err: io.Discard})
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMpirunMeetsItsHostsAroundTheCommand(t *testing.T) {
	r := &recorder{status: 7}
	shell := r.shell()
	var job Program
	shell.Spread = func(ctx context.Context, p Program, _ Streams, run func(context.Context, podenv.Env) int) int {
		job = p
		return run(ctx, podenv.Env{"OMPI_COMM_WORLD_SIZE": "2"})
	}
	script := `mpirun --oversubscribe -n 2 -H a,b --mca plm_rsh_args "-p 2222" -x HOME bash -c 'trtllm-llmapi-launch python3 -m dynamo.trtllm --model-path m'`
	status := shell.Exec(t.Context(), []string{"sh", "-c", script}, podenv.Env{"HOME": "/root"}, Streams{Out: io.Discard, Err: io.Discard})
	if status != 7 {
		t.Errorf("status %d is not the wrapped command's", status)
	}
	want := []string{"--oversubscribe", "-n", "2", "-H", "a,b", "--mca", "plm_rsh_args", "-p 2222", "-x", "HOME"}
	if diff := cmp.Diff(want, job.Args); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if got := r.summary(); len(got) != 1 || !strings.HasPrefix(got[0], "worker dynamo.trtllm") {
		t.Fatalf("programs %v", got)
	}
	if got := r.programs[0].Env["OMPI_COMM_WORLD_SIZE"]; got != "2" {
		t.Errorf("the wrapped command sees OMPI_COMM_WORLD_SIZE=%q", got)
	}
}
