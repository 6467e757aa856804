package discovery

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// Open chooses the store by DYN_DISCOVERY_BACKEND, or DYN_STORE_KV where that
// is unset, and says which instance id this process has in it.
//
// There is no etcd: where the runtime would use it, processes on one machine
// meet in a folder instead (DYN_FILE_KV), one per cluster.
func Open(env podenv.Env, log *slog.Logger) (Store, uint64, error) {
	switch backend := env.String("etcd", "DYN_DISCOVERY_BACKEND", "DYN_STORE_KV"); backend {
	case "kubernetes":
		pod := Pod{Name: env["POD_NAME"], Namespace: env.String("default", "POD_NAMESPACE"), UID: env["POD_UID"]}
		if env["DYN_KUBE_DISCOVERY_MODE"] == "container" {
			pod.Container = env["CONTAINER_NAME"]
		}
		store, err := NewKubernetes(env["KUBECONFIG"], pod, log)
		if err != nil {
			return nil, 0, err
		}
		return store, InstanceID(pod.object()), nil
	case "mem":
		log.Warn("discovery is limited to this process", "backend", backend)
		return NewHub().Join(), InstanceID(memberName(env)), nil
	case "etcd", "file":
		dir := env.String(defaultFolder(env), "DYN_FILE_KV")
		if backend == "etcd" {
			log.Warn("no etcd in the mock engine; discovery is a folder of this machine", "folder", dir)
		}
		name := memberName(env)
		id := InstanceID(name)
		store, err := NewFolder(dir, fmt.Sprintf("%x", id), log)
		if err != nil {
			return nil, 0, err
		}
		return store, id, nil
	default:
		return nil, 0, fmt.Errorf("discovery backend %q: want kubernetes, file or mem", backend)
	}
}

// memberName is the pod's name, or something unique outside of pods.
func memberName(env podenv.Env) string {
	if pod := env["POD_NAME"]; pod != "" {
		return pod
	}
	return fmt.Sprintf("process-%d-%d", os.Getpid(), time.Now().UnixNano())
}

func defaultFolder(env podenv.Env) string {
	name := "dynamo_store_kv"
	if host := env["KUBERNETES_SERVICE_HOST"]; host != "" {
		name += "-" + host + "-" + env["KUBERNETES_SERVICE_PORT"]
	}
	return filepath.Join(os.TempDir(), name)
}
