package attack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// clipboard is OSC 52, by which a text writes the clipboard of whose terminal shows
// it, and how YAML spells it.
const (
	clipboard       = "\x1b]52;c;ZXZpbA==\x07"
	clipboardInYAML = `\x1b]52;c;ZXZpbA==\x07`
)

var _ = add(attack{
	name: "a log line writes the clipboard of an administrator who asks why", finding: "S11",
	heldBy: []barrier{code(sanitise.Terminal)},
	try: func(s *scene) outcome {
		ns := s.namespace(nil)
		spec := `{services: {a: {extraPodSpec: {mainContainer: {image: "dynamo-mocker:dev", args: ["echo 'no model ` + clipboardInYAML + ` there' >&2; exit 1"]}}}}}`
		if err := s.tenant(ns, "edit").Create(s.ctx, graphOf(ns, "g", spec)); err != nil {
			s.Fatal(err)
		}
		var said string
		s.eventually("the log line to be shown", func(ctx context.Context) (err error) {
			if said, err = s.plugin(ctx, "why", "g", "--namespace", ns); err == nil && !strings.Contains(said, "no model") {
				err = fmt.Errorf("it says %q", said)
			}
			return err
		})
		if strings.Contains(said, clipboard) {
			return gotThrough("it prints %q", said)
		}
		return held("it prints %q", said)
	},
})

// plugin runs kubectl dynamo as the administrator of the world, from a build without
// the attack's guards in the bare one.
func (s *scene) plugin(ctx context.Context, args ...string) (string, error) {
	program := exec.CommandContext(ctx, filepath.Join(programs, "kubectl-dynamo"), args...)
	program.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)
	if s.bare {
		program.Path = filepath.Join(folder, "bin", "kubectl-dynamo")
		program.Env = append(program.Env, "DYNAMO_GUARDS_OFF="+strings.Join(guardsInUse(), ","))
	}
	said, err := program.Output()
	return string(said), err
}
