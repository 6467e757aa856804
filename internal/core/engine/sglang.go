package engine

import (
	"strconv"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

const sglangPort = "29500"

// sglang is told the leader's address, the number of nodes, and which of them
// it is.
func sglang(s Spec) (Container, error) {
	l := Container{Command: s.Command, Args: s.Args}
	if s.Group.Position == Alone {
		return l, nil
	}
	worker := s.Group.Position == Worker
	rank := "0"
	if worker {
		rank = s.Group.Addresses.Rank
	}
	needed := worker && !s.Group.Addresses.RankExec
	shell := needed || !direct(graph.EngineSGLang, s.Command, s.Args)
	l.NoProbes = worker
	l.Command, l.Args, l.Joined = splice(graph.EngineSGLang, s.Command, s.Args, flags{shell: needed, words: []string{
		"--dist-init-addr", s.Group.Addresses.Leader(shell) + ":" + sglangPort,
		"--nnodes", strconv.Itoa(s.Group.Nodes),
		"--node-rank", rank,
	}})
	return l, nil
}
