package surface

// patch is the surface over one triangle: three cubics that meet at its centre, smooth among
// themselves and with those beside, as the heights that Bézier's form has (Clough and Tocher;
// Alfeld 1984, Farin 1986).
type patch struct {
	corner  [3]float64
	edge    [3][3]float64 // near the first corner, on the way to the second
	inner   [3]float64    // near a corner, on the way to the centre
	across  [3]float64    // near the edge that faces a corner
	towards [3]float64    // near the centre, on the way to a corner
	centre  float64
}

func (s *Surface) patch(i int) patch {
	var p patch
	m, t := s.mesh, s.mesh.triangles[i]
	for a, from := range t.corners {
		p.corner[a] = s.values[from]
		p.inner[a] = p.corner[a]
		for b, to := range t.corners {
			if a != b {
				p.edge[a][b] = p.corner[a] + s.slopes[from].over(m.x[to]-m.x[from], m.y[to]-m.y[from])/3
				p.inner[a] += p.edge[a][b]
			}
		}
		p.inner[a] /= 3
	}
	// Over an edge the slope in one direction is to change at an even rate, or patches would
	// not meet smoothly: the height in the middle is what it takes.
	for k := range p.across {
		a, b := (k+1)%3, (k+2)%3
		lean := m.lean(i, k)
		p.across[k] = p.edge[a][b] + lean*(p.edge[a][b]-p.edge[b][a]) +
			(p.inner[a]-p.corner[a]+p.inner[b]-p.edge[b][a]+lean*(p.edge[a][b]-p.corner[a]+p.corner[b]-p.edge[b][a]))/2
	}
	for a := range p.towards {
		p.towards[a] = (p.inner[a] + p.across[(a+1)%3] + p.across[(a+2)%3]) / 3
		p.centre += p.towards[a] / 3
	}
	return p
}

// lean is the direction over the edge that faces corner k of a triangle, as what it takes
// along the edge besides the way from the edge's first corner to the centre. It is that from
// one centre to the other, for which scales of axes do not matter; at the rim that to the
// corner.
func (m *Mesh) lean(i, k int) float64 {
	other := m.triangles[i].across[k]
	if other == none {
		return -0.5
	}
	var x, y float64
	for _, c := range m.triangles[other].corners {
		x += m.x[c] / 3
		y += m.y[c] / 3
	}
	shares := m.shares(i, x, y)
	return (3*shares[(k+2)%3]-1)/(3*(3*shares[k]-1)) - 1.0/3
}

// at is the height at a place with these shares of the corners.
func (p *patch) at(shares [3]float64) float64 {
	k := 0 // the corner that is farthest
	for i := range shares {
		if shares[i] < shares[k] {
			k = i
		}
	}
	a, b := (k+1)%3, (k+2)%3
	u, v, w := shares[a]-shares[k], shares[b]-shares[k], 3*shares[k]
	return u*u*u*p.corner[a] + v*v*v*p.corner[b] + w*w*w*p.centre +
		3*u*v*(u*p.edge[a][b]+v*p.edge[b][a]) +
		3*w*(u*u*p.inner[a]+v*v*p.inner[b]) +
		3*w*w*(u*p.towards[a]+v*p.towards[b]) +
		6*u*v*w*p.across[k]
}
