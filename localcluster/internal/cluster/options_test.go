package cluster

import (
	"errors"
	"net"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/subnet"
)

func TestCheck(t *testing.T) {
	have := clusterdir.State{Nodes: 4, GPUsPerNode: 8, Subnet: 30, Devices: device.Counts{"gpu.nvidia.com": 8}}
	for name, tc := range map[string]struct {
		options Options
		want    error
	}{
		"nothing said means as before":      {Options{}, nil},
		"the same said again is no change":  {Options{Nodes: 4, GPUsPerNode: new(8), Subnet: 30}, nil},
		"nodes are fixed":                   {Options{Nodes: 2}, ErrConflict},
		"GPUs are fixed, and none is a say": {Options{GPUsPerNode: new(0)}, ErrConflict},
		"devices said again are no change":  {Options{Devices: device.Counts{"gpu.nvidia.com": 8}}, nil},
		"devices are fixed":                 {Options{Devices: device.Counts{"gpu.nvidia.com": 4}}, ErrConflict},
		"the subnet is fixed":               {Options{Subnet: 31}, ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.options.Check(have); !errors.Is(err, tc.want) {
				t.Errorf("Check() = %v, want %v", err, tc.want)
			}
		})
	}
}

func TestAddOnsOfAStoppedClusterGrow(t *testing.T) {
	dir := clusterdir.Dir(t.TempDir())
	other, err := subnet.ReserveAny(50)
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	if err := dir.WriteState(clusterdir.State{Nodes: 1, Subnet: byte(other.Network), AddOns: []string{"lws"}}); err != nil {
		t.Fatal(err)
	}
	state, reservation, err := Options{Dir: dir, With: []string{"volcano", "grove", "lws"}}.settle()
	if err != nil {
		t.Fatal(err)
	}
	defer reservation.Close()
	if diff := cmp.Diff([]string{"grove", "lws", "volcano"}, state.AddOns); diff != "" {
		t.Errorf("add-ons (-want +got):\n%s", diff)
	}
}

func TestARunningClusterGetsNoNewAddOns(t *testing.T) {
	running := clusterdir.State{Nodes: 4, AddOns: []string{"lws", "volcano"}}
	if err := (Options{With: []string{"lws"}}).CheckRunning(running); err != nil {
		t.Errorf("CheckRunning() of one that it has = %v", err)
	}
	if err := (Options{With: []string{"grove"}}).CheckRunning(running); !errors.Is(err, ErrConflict) {
		t.Errorf("CheckRunning() of one that it lacks = %v, want %v", err, ErrConflict)
	}
}

func TestSettleANewCluster(t *testing.T) {
	state, reservation, err := Options{Dir: clusterdir.Dir(t.TempDir())}.settle()
	if err != nil {
		t.Fatal(err)
	}
	defer reservation.Close()
	want := clusterdir.State{Nodes: 4, GPUsPerNode: 8, Subnet: byte(reservation.Network), Devices: device.Default(8)}
	if diff := cmp.Diff(want, state); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestAStoppedClusterKeepsItsSubnetOrFails(t *testing.T) {
	dir := clusterdir.Dir(t.TempDir())
	other, err := subnet.ReserveAny(100)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := dir.WriteState(clusterdir.State{Nodes: 1, Subnet: byte(other.Network)}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := (Options{Dir: dir}).settle(); !errors.Is(err, subnet.ErrTaken) {
		t.Errorf("settle() while another cluster has the subnet = %v, want %v", err, subnet.ErrTaken)
	}
	other.Close()
	state, reservation, err := Options{Dir: dir}.settle()
	if err != nil {
		t.Fatal(err)
	}
	defer reservation.Close()
	if state.Subnet != byte(other.Network) {
		t.Errorf("subnet %d, want %d", state.Subnet, other.Network)
	}
}

func TestSettleRefusesWhatCannotBe(t *testing.T) {
	for name, options := range map[string]Options{
		"too many nodes": {Nodes: maxNodes + 1},
		"negative GPUs":  {GPUsPerNode: new(-1)},
		"no such subnet": {Subnet: 3},
	} {
		t.Run(name, func(t *testing.T) {
			options.Dir = clusterdir.Dir(t.TempDir())
			if _, reservation, err := options.settle(); err == nil {
				reservation.Close()
				t.Error("settle() succeeded")
			}
		})
	}
}

func TestPortsStayUnlessTaken(t *testing.T) {
	state := clusterdir.State{Subnet: 250}
	if err := assignPorts(&state); err != nil {
		t.Fatal(err)
	}
	again := state
	if err := assignPorts(&again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(state, again); diff != "" {
		t.Errorf("ports changed though they were free (-first +second):\n%s", diff)
	}

	u, err := url.Parse(state.APIServer)
	if err != nil {
		t.Fatal(err)
	}
	squatter, err := net.Listen("tcp4", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	moved := state
	if err := assignPorts(&moved); err != nil {
		t.Fatal(err)
	}
	if moved.APIServer == state.APIServer {
		t.Errorf("%s was assigned though it is taken", moved.APIServer)
	}
	if moved.ProxyURL != state.ProxyURL || moved.KubeletAddress != state.KubeletAddress {
		t.Errorf("free ports moved too: %+v", moved)
	}
}
