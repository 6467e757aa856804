package rendezvous

import (
	"strings"
	"testing"
	"time"
)

func TestAnEngineWaitsForItsGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		head  int
		nodes []int
		need  int
		lacks string
	}{
		"the head alone has enough":               {head: 8, need: 8},
		"two nodes have enough together":          {head: 8, nodes: []int{8}, need: 16},
		"more than enough is enough":              {head: 8, nodes: []int{8, 8}, need: 12},
		"a node that does not know has enough":    {head: 8, nodes: []int{0}, need: 16},
		"a head that does not know has enough":    {head: 0, need: 16},
		"too few GPUs are said in numbers":        {head: 1, nodes: []int{1}, need: 4, lacks: "not within 1s: the engine needs 4 GPUs, the Ray cluster has 2"},
		"a cluster without workers is waited for": {head: 1, need: 2, lacks: "the engine needs 2 GPUs, the Ray cluster has 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n := w.node(0)
			if c.lacks != "" {
				n.Timeout = time.Second
			}
			head, err := StartHead(n, w.port, c.head)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(head.Close)
			for i, gpus := range c.nodes {
				node, err := JoinRay(t.Context(), w.node(i+1), w.leader(), gpus)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(node.Close)
			}
			group, err := head.Claim(t.Context(), c.need)
			t.Cleanup(group.Close)
			switch {
			case c.lacks == "" && err != nil:
				t.Error(err)
			case c.lacks != "" && (err == nil || !strings.Contains(err.Error(), c.lacks)):
				t.Errorf("error %v, want %q", err, c.lacks)
			}
		})
	}
}

func TestARayClusterBreaks(t *testing.T) {
	start := func(t *testing.T) (head *Head, engine, node *Group) {
		w := newWorld(t)
		n, other := w.node(0), w.node(1)
		head, err := StartHead(n, w.port, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(head.Close)
		if node, err = JoinRay(t.Context(), other, w.leader(), 1); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(node.Close)
		if engine, err = head.Claim(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(engine.Close)
		return head, engine, node
	}
	t.Run("a lost node ends the engine", func(t *testing.T) {
		_, engine, node := start(t)
		node.Close()
		lost(t, engine, "lost node node-1")
	})
	t.Run("a lost head ends its nodes", func(t *testing.T) {
		head, _, node := start(t)
		head.Close()
		lost(t, node, "lost the leader")
	})
}

func TestARayNodeFailsLoudly(t *testing.T) {
	w := newWorld(t)
	n := w.node(1)
	n.Timeout = time.Second
	for name, c := range map[string]struct{ address, why string }{
		"a head that cannot be resolved": {"node-0:6379", "reach the leader node-0:6379: not within 1s: lookup node-0: no such host"},
		"an unexpanded variable":         {"$(LWS_LEADER_ADDRESS):6379", "has no host that could be resolved"},
		"no address":                     {"", "is not host:port"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := JoinRay(t.Context(), n, c.address, 1); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("error %v, want %q", err, c.why)
			}
		})
	}
	t.Run("a node of another kind of group is no Ray node", func(t *testing.T) {
		w := newWorld(t)
		n, stranger := w.node(0), w.node(1)
		head, err := StartHead(n, w.port, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(head.Close)
		w.fails(w.join(t.Context(), stranger, w.place(1, 1, 2)), "another kind of group")
	})
}
