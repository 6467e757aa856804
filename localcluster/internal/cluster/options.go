package cluster

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/subnet"
)

// Options are what a user may choose. Zero means "as before", or the default for a new cluster.
type Options struct {
	Dir         clusterdir.Dir
	Nodes       int
	GPUsPerNode *int // zero GPUs is a choice
	Devices     device.Counts
	Subnet      byte
	BinDir      string
	AuditLog    bool
	ServerOnly  bool     // etcd and the API server, for those who measure a client
	With        []string // add-ons beside those that the cluster has
}

const (
	defaultNodes       = 4
	defaultGPUsPerNode = 8
	maxNodes           = 1000
)

// ErrConflict says that the options contradict the cluster in the directory.
var ErrConflict = errors.New("the cluster in this directory differs")

// Check refuses options that the existing cluster cannot follow: the numbers are in its objects by now.
func (o Options) Check(s clusterdir.State) error {
	for _, option := range []struct {
		flag        string
		given       bool
		asked, have int
	}{
		{"nodes", o.Nodes != 0, o.Nodes, s.Nodes},
		{"gpus-per-node", o.GPUsPerNode != nil, valueOr(o.GPUsPerNode, 0), s.GPUsPerNode},
		{"subnet", o.Subnet != 0, int(o.Subnet), int(s.Subnet)},
	} {
		if option.given && option.asked != option.have {
			return fmt.Errorf("--%s=%d, but %s was made with %d (leave the flag out, use another --dir, or `localcluster down --delete` first): %w",
				option.flag, option.asked, o.Dir, option.have, ErrConflict)
		}
	}
	if o.Devices != nil && !maps.Equal(o.Devices, s.Devices) {
		return fmt.Errorf("--devices=%v, but %s was made with %v (leave the flag out, use another --dir, or `localcluster down --delete` first): %w",
			o.Devices, o.Dir, s.Devices, ErrConflict)
	}
	return nil
}

// CheckRunning refuses options that a running cluster does not meet.
func (o Options) CheckRunning(s clusterdir.State) error {
	for _, name := range o.With {
		if !slices.Contains(s.AddOns, name) {
			return fmt.Errorf("--with=%s, but %s runs without it (`localcluster down` first): %w", name, o.Dir, ErrConflict)
		}
	}
	return o.Check(s)
}

// addOns joins those asked for to those there.
func (o Options) addOns(have []string) []string {
	all := slices.Concat(have, o.With)
	slices.Sort(all)
	return slices.Compact(all)
}

// settle decides the state of the next run and takes its subnet.
func (o Options) settle() (clusterdir.State, *subnet.Reservation, error) {
	state, err := o.Dir.ReadState()
	switch {
	case errors.Is(err, clusterdir.ErrNoCluster):
		return o.settleNew()
	case err != nil:
		return clusterdir.State{}, nil, err
	}
	if err := o.Check(state); err != nil {
		return clusterdir.State{}, nil, err
	}
	reservation, err := subnet.Reserve(state.Subnet)
	if err != nil {
		return clusterdir.State{}, nil, fmt.Errorf("the addresses of this cluster are in use (stop the other cluster first): %w", err)
	}
	o.Dir.RemoveSocketDir(state.SocketDir)
	state.AddOns = o.addOns(state.AddOns)
	if state.Devices == nil { // made before nodes had any
		state.Devices = device.Default(state.GPUsPerNode)
	}
	return state, reservation, nil
}

func (o Options) settleNew() (clusterdir.State, *subnet.Reservation, error) {
	state := clusterdir.State{Nodes: o.Nodes, GPUsPerNode: valueOr(o.GPUsPerNode, defaultGPUsPerNode), AddOns: o.addOns(nil)}
	if state.Nodes == 0 {
		state.Nodes = defaultNodes
	}
	if state.Nodes < 0 || state.Nodes > maxNodes {
		return state, nil, fmt.Errorf("--nodes=%d: must be within 1..%d", state.Nodes, maxNodes)
	}
	if state.GPUsPerNode < 0 {
		return state, nil, fmt.Errorf("--gpus-per-node=%d: must not be negative", state.GPUsPerNode)
	}
	state.Devices = o.Devices
	if state.Devices == nil {
		state.Devices = device.Default(state.GPUsPerNode)
	}
	if err := state.Devices.Validate(); err != nil {
		return state, nil, fmt.Errorf("--devices: %w", err)
	}
	var reservation *subnet.Reservation
	var err error
	if o.Subnet != 0 {
		reservation, err = subnet.Reserve(o.Subnet)
	} else {
		hash := fnv.New32a()
		hash.Write([]byte(o.Dir))
		reservation, err = subnet.ReserveAny(hash.Sum32())
	}
	if err != nil {
		return state, nil, err
	}
	state.Subnet = byte(reservation.Network)
	return state, reservation, nil
}

func valueOr(p *int, otherwise int) int {
	if p == nil {
		return otherwise
	}
	return *p
}
