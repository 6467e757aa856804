package requestplan

import (
	"cmp"
	"slices"
)

// Node is what a node tells about its GPUs.
type Node struct {
	Product string
	// MemoryMiB is that of one GPU.
	MemoryMiB int
	GPUs      int
}

// Hardware picks the GPUs to profile for: those of the nodes with most of them,
// then those with most memory. It is false if no node has any.
func Hardware(nodes []Node) (Node, bool) {
	with := slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.GPUs == 0 || n.Product == "" })
	if len(with) == 0 {
		return Node{}, false
	}
	return slices.MaxFunc(with, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.MemoryMiB, b.MemoryMiB), cmp.Compare(b.Product, a.Product))
	}), true
}
