package requestplan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// Node is what a node tells about its GPUs.
type Node struct {
	Product string
	// MemoryMiB is that of one GPU.
	MemoryMiB int
	GPUs      int
	// RDMA is true if the node offers it.
	RDMA bool
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

// mostGPUs bounds what a request of v1beta1 that says nothing may plan for.
const mostGPUs = 32

// anything is what nodes tell where they tell everything.
var anything = v1beta1.Hardware{GPUSKU: "h200_sxm", VRAMMB: new(1.0), TotalGPUs: new(int32(1)), NumGPUsPerNode: new(int32(1)), RDMA: new(false)}

// having are the nodes with a GPU, whether it is named as a system or as a product.
func having(gpu string, nodes []Node) []Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool {
		return n.Product != gpu && (SKU(n.Product) == "" || SKU(n.Product) != SKU(gpu))
	})
}

// complete adds what the nodes tell to what a request of v1beta1 says of its
// hardware. Where that names a GPU, nodes with another one have nothing to tell:
// their memory and numbers are not those of the named.
func complete(given *v1beta1.Hardware, nodes []Node) *v1beta1.Hardware {
	var found v1beta1.Hardware
	if given != nil && given.GPUSKU != "" {
		nodes = having(given.GPUSKU, nodes)
	}
	if best, ok := Hardware(nodes); ok {
		total, rdma := 0, false
		for _, n := range nodes {
			if n.Product == best.Product && n.MemoryMiB == best.MemoryMiB {
				total, rdma = total+n.GPUs, rdma || n.RDMA
			}
		}
		found = v1beta1.Hardware{
			GPUSKU: SKU(best.Product), TotalGPUs: new(int32(min(total, mostGPUs))), NumGPUsPerNode: new(int32(best.GPUs)), RDMA: &rdma,
		}
		if best.MemoryMiB > 0 {
			found.VRAMMB = new(float64(best.MemoryMiB))
		}
	}
	return over(given, &found)
}

// over is one hardware with the fields that another has and it has not.
func over(given, under *v1beta1.Hardware) *v1beta1.Hardware {
	var h, u v1beta1.Hardware
	if given != nil {
		h = *given
	}
	if under != nil {
		u = *under
	}
	return &v1beta1.Hardware{
		GPUSKU: cmp.Or(h.GPUSKU, u.GPUSKU), VRAMMB: cmp.Or(h.VRAMMB, u.VRAMMB), TotalGPUs: cmp.Or(h.TotalGPUs, u.TotalGPUs),
		NumGPUsPerNode: cmp.Or(h.NumGPUsPerNode, u.NumGPUsPerNode), Interconnect: cmp.Or(h.Interconnect, u.Interconnect), RDMA: cmp.Or(h.RDMA, u.RDMA),
	}
}

// skus are the GPUs that a request of v1beta1 knows, by the word for them in a
// product's name: as a module, and as a card if there are both.
var skus = map[string]struct{ module, card string }{
	"GB200": {module: "gb200_sxm"}, "GB10": {module: "gb10"}, "B200": {module: "b200_sxm"}, "H200": {module: "h200_sxm"},
	"H100": {"h100_sxm", "h100_pcie"}, "A100": {"a100_sxm", "a100_pcie"}, "V100": {"v100_sxm", "v100_pcie"},
	"A30": {module: "a30"}, "L40S": {module: "l40s"}, "L40": {module: "l40"}, "L4": {module: "l4"}, "T4": {module: "t4"},
	"MI200": {module: "mi200"}, "MI300": {module: "mi300"}, "MI300X": {module: "mi300"},
}

// SKU is the gpuSku of a product as GPU feature discovery names it; empty if
// there is none.
func SKU(product string) string {
	words := strings.FieldsFunc(strings.ToUpper(product), func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
	for _, word := range words {
		sku, known := skus[word]
		switch {
		case known && sku.card != "" && slices.Contains(words, "PCIE"):
			return sku.card
		case known:
			return sku.module
		}
	}
	return ""
}
