package clusterdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
)

// State is cluster.json: what was decided when the cluster was first started, and where it is reachable now.
type State struct {
	// Fixed for the life of the directory: addresses and capacities are stored in the cluster's own objects.
	Subnet      byte `json:"subnet"`
	Nodes       int  `json:"nodes"`
	GPUsPerNode int  `json:"gpusPerNode"`
	// Devices of each node by DeviceClass.
	Devices device.Counts `json:"devices,omitempty"`

	// AddOns only ever grow: what they installed has objects of its own by now.
	AddOns []string `json:"addOns,omitempty"`

	// Decided at every start.
	BinDir         string `json:"binDir"`
	AuditLog       bool   `json:"auditLog"`
	APIServer      string `json:"apiServer"`      // https://127.0.0.1:port
	ProxyURL       string `json:"proxyURL"`       // http://127.0.0.1:port
	KubeletAddress string `json:"kubeletAddress"` // 127.0.0.1:port, shared by all nodes
	SocketDir      string `json:"socketDir"`
	SupervisorPID  int    `json:"supervisorPID"`
	Ready          bool   `json:"ready"`
}

// ErrNoCluster says that a directory has never held a cluster.
var ErrNoCluster = errors.New("no cluster here")

// ReadState reads cluster.json.
func (d Dir) ReadState() (State, error) {
	data, err := os.ReadFile(d.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return State{}, fmt.Errorf("%s has no cluster.json (start one with `localcluster up --dir %s`): %w", d, d, ErrNoCluster)
	}
	if err != nil {
		return State{}, fmt.Errorf("read cluster state: %w", err)
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, fmt.Errorf("parse %s: %w", d.stateFile(), err)
	}
	return s, nil
}

// WriteState replaces cluster.json.
func (d Dir) WriteState(s State) error {
	return WriteJSON(d.stateFile(), s)
}

// WriteJSON replaces a file in one step, so that a reader sees the old content or the new, never half of it.
func WriteJSON(file string, content any) error {
	data, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	temp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // gone if all went well
	if _, err := temp.Write(append(data, '\n')); err != nil {
		_ = temp.Close()
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := temp.Close(); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(temp.Name(), file); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
