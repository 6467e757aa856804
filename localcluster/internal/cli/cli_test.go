package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/cluster"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
)

func TestKubectlTakesALeadingDirOnly(t *testing.T) {
	elsewhere := func() (clusterdir.Dir, error) { return "/default", nil }
	for name, tc := range map[string]struct {
		args     []string
		wantDir  clusterdir.Dir
		wantRest []string
	}{
		"none":                              {[]string{"get", "pods"}, "/default", []string{"get", "pods"}},
		"in two words":                      {[]string{"--dir", "/d", "get", "pods"}, "/d", []string{"get", "pods"}},
		"in one word":                       {[]string{"--dir=/d", "get", "pods"}, "/d", []string{"get", "pods"}},
		"kubectl's own flags are kubectl's": {[]string{"cp", "--dir=/d"}, "/default", []string{"cp", "--dir=/d"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, rest, err := kubectlDir(elsewhere, tc.args)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{tc.wantDir, tc.wantRest}, []any{dir, rest}); diff != "" {
				t.Errorf("kubectlDir(%q) (-want +got):\n%s", tc.args, diff)
			}
		})
	}
}

func TestTheSupervisorIsAskedForTheSameCluster(t *testing.T) {
	bin := t.TempDir()
	for name, want := range map[string]cluster.Options{
		"defaults":         {Dir: "/d", BinDir: bin},
		"everything":       {Dir: "/d", BinDir: bin, Nodes: 3, GPUsPerNode: new(4), Subnet: 99, AuditLog: true, Devices: device.Counts{"gpu.nvidia.com": 2, "npu.example.com": 1}},
		"no GPUs is a say": {Dir: "/d", BinDir: bin, GPUsPerNode: new(0)},
	} {
		t.Run(name, func(t *testing.T) {
			var flags upFlags
			cmd := newSupervise(nil)
			cmd.ResetFlags()
			dir := cmd.Flags().String("dir", "", "")
			flags.add(cmd)
			if err := cmd.ParseFlags(superviseArgs(want)[1:]); err != nil {
				t.Fatal(err)
			}
			got, err := flags.options(cmd, clusterdir.Dir(*dir))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("options (-asked +supervised):\n%s", diff)
			}
		})
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	bin := t.TempDir()
	for name, mode := range map[string]os.FileMode{"dynamo-mocker": 0o755, "dynamo-operator": 0o644} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"dynamo-operator"}, missingPrograms(bin)); diff != "" {
		t.Errorf("missing, of one that is there and one that cannot be executed (-want +got):\n%s", diff)
	}
}

func TestCommandsSayThatThereIsNoCluster(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"kubeconfig"}, {"logs"}, {"kubectl", "get", "ns"}} {
		t.Setenv(clusterdir.EnvDir, filepath.Join(t.TempDir(), "nothing"))
		root := newRoot(func() int { t.Error("kubectl was run"); return 0 })
		root.SetArgs(args)
		root.SetOut(new(bytes.Buffer))
		if err := root.Execute(); !errors.Is(err, clusterdir.ErrNoCluster) {
			t.Errorf("%v: %v, want %v", args, err, clusterdir.ErrNoCluster)
		}
	}
}
