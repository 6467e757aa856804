package controlplane

import "github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"

// Etcd stores the cluster.
func Etcd(c Cluster) supervisor.Program {
	// A member must listen for peers even if it has none. Of this URL etcd uses the host part only, as a path relative
	// to the working directory.
	peer := "unix://etcd-peer.sock"
	client := "unix://" + c.EtcdSocket()
	return supervisor.Program{
		Name: EtcdName,
		Args: []string{
			"--name=localcluster",
			"--data-dir=" + c.Dir.Etcd(),
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=localcluster=" + peer,
			// A killed process loses nothing that it handed to the kernel; only a crash of the machine could.
			"--unsafe-no-fsync",
			"--snapshot-count=5000",
			"--log-level=warn",
		},
		Env:   Environment(),
		Dir:   c.State.SocketDir,
		Grace: StopGrace,
	}
}
