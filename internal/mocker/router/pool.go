package router

import (
	"cmp"
	"fmt"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// pools is a global router's configuration: namespaces of worker pools, and two
// grids that say which pool serves a request of some length under some target.
type pools struct {
	PrefillNamespaces []string    `json:"prefill_pool_dynamo_namespaces"`
	DecodeNamespaces  []string    `json:"decode_pool_dynamo_namespaces"`
	Prefill           prefillGrid `json:"prefill_pool_selection_strategy"`
	Decode            decodeGrid  `json:"decode_pool_selection_strategy"`

	ttft, itl float64 // targets of requests that name none
}

type prefillGrid struct {
	TTFTMin        float64 `json:"ttft_min"`
	TTFTMax        float64 `json:"ttft_max"`
	TTFTResolution int     `json:"ttft_resolution"`
	ISLMin         float64 `json:"isl_min"`
	ISLMax         float64 `json:"isl_max"`
	ISLResolution  int     `json:"isl_resolution"`
	// Mapping is indexed by length, then by target.
	Mapping [][]int `json:"prefill_pool_mapping"`
}

type decodeGrid struct {
	ITLMin            float64 `json:"itl_min"`
	ITLMax            float64 `json:"itl_max"`
	ITLResolution     int     `json:"itl_resolution"`
	ContextMin        float64 `json:"context_length_min"`
	ContextMax        float64 `json:"context_length_max"`
	ContextResolution int     `json:"context_length_resolution"`
	Mapping           [][]int `json:"decode_pool_mapping"`
}

func (p *pools) validate() error {
	check := func(name string, mapping [][]int, rows, columns, pools int) error {
		if len(mapping) != rows || rows == 0 {
			return fmt.Errorf("%s_pool_mapping has %d rows, want %d", name, len(mapping), rows)
		}
		for _, row := range mapping {
			if len(row) != columns || columns == 0 {
				return fmt.Errorf("%s_pool_mapping has a row of %d, want %d", name, len(row), columns)
			}
			for _, pool := range row {
				if pool < 0 || pool >= pools {
					return fmt.Errorf("%s_pool_mapping names pool %d of %d", name, pool, pools)
				}
			}
		}
		return nil
	}
	if err := check("prefill", p.Prefill.Mapping, p.Prefill.ISLResolution, p.Prefill.TTFTResolution, len(p.PrefillNamespaces)); err != nil {
		return err
	}
	return check("decode", p.Decode.Mapping, p.Decode.ContextResolution, p.Decode.ITLResolution, len(p.DecodeNamespaces))
}

// cell is the index of x in a range cut into n equal parts; what is outside
// belongs to the nearest part.
func cell(x, low, high float64, n int) int {
	if high <= low {
		return 0
	}
	return min(n-1, max(0, int((x-low)/(high-low)*float64(n))))
}

func (p *pools) prefill(r wire.Request) (discovery.Address, error) {
	g := p.Prefill
	row := cell(float64(len(r.Tokens)), g.ISLMin, g.ISLMax, g.ISLResolution)
	column := cell(cmp.Or(r.TTFT, p.ttft), g.TTFTMin, g.TTFTMax, g.TTFTResolution)
	return localRouter(p.PrefillNamespaces[g.Mapping[row][column]]), nil
}

func (p *pools) decode(r wire.Request) (discovery.Address, error) {
	g := p.Decode
	row := cell(float64(len(r.Tokens)), g.ContextMin, g.ContextMax, g.ContextResolution)
	column := cell(cmp.Or(r.ITL, p.itl), g.ITLMin, g.ITLMax, g.ITLResolution)
	return localRouter(p.DecodeNamespaces[g.Mapping[row][column]]), nil
}

func localRouter(namespace string) discovery.Address {
	return discovery.Address{Namespace: namespace, Component: "router", Endpoint: "generate"}
}
