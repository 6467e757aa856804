package applet

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs of other clusters may need it
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// Kubectl runs kubectl with the arguments of this process.
func Kubectl() int {
	// Verbosity counts before flags are parsed: plugins and .kuberc are handled while the command is built.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return 0
}
