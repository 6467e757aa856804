// Command localcluster is a whole Kubernetes cluster in one binary: called by its own name it manages clusters, called
// as one of a cluster's programs it is that program.
package main

import (
	"os"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/applet"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/cli"
)

func main() {
	if applet.Run(os.Args) {
		return
	}
	os.Exit(cli.Run(applet.Kubectl))
}
