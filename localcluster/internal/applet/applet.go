// Package applet holds the programs that one binary can be: those of Kubernetes, and the cluster's own. Which one
// runs is decided by the name it was called as. Starting and stopping them is the supervisor's business.
package applet

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the components' own requests
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"go.etcd.io/etcd/server/v3/etcdmain"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/addon"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/controlplane"
)

// Run becomes the program named by argv[0] and does not return, or returns false if that names no applet.
func Run(argv []string) bool {
	name := filepath.Base(argv[0])
	var run func() int
	switch name {
	case controlplane.EtcdName:
		run = func() int { etcdmain.Main(argv); return 0 }
	case controlplane.APIServerName:
		run = func() int { return cli.Run(apiserver.NewAPIServerCommand()) }
	case controlplane.ControllerManagerName:
		run = func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) }
	case controlplane.SchedulerName:
		run = func() int { return cli.Run(scheduler.NewSchedulerCommand()) }
	case controlplane.ProxyName:
		run = func() int { return status(name, runProxy(argv[1:])) }
	case controlplane.NodeAgentName:
		run = func() int { return status(name, runNodeAgent(argv[1:])) }
	case addon.GroveName:
		run = func() int { return status(name, runGrove(argv[1:])) }
	case "kubectl": // the only one that people call themselves, through a link
		run = Kubectl
	default:
		return false
	}
	// All processes share one executable; the name tells them apart in ps and top.
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
	os.Exit(run())
	return true
}

func status(name string, err error) int {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
