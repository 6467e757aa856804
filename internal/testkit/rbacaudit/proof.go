package rbacaudit

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Proof is what roles give, against what was used of it.
type Proof struct {
	roles    []Role
	used     Usage
	reasons  []Reason
	problems []string
}

// Prove holds what holders are given against what they did.
func Prove(holders []Holder, used Usage, reasons []Reason) Proof {
	p := Proof{used: used, reasons: reasons}
	seen := map[string]bool{}
	for _, h := range holders {
		for _, role := range h.Roles {
			if !seen[role.Name] {
				seen[role.Name] = true
				p.roles = append(p.roles, role)
			}
		}
	}
	spoken := map[int]bool{}
	for _, role := range p.roles {
		for _, right := range role.Rights() {
			if used.Used[right] {
				continue
			}
			if at := p.reason(right); at >= 0 {
				spoken[at] = true
			} else {
				p.problems = append(p.problems, "granted and not used: "+right.String())
			}
		}
	}
	for i, r := range reasons {
		if !spoken[i] {
			p.problems = append(p.problems, "a reason for what is used, or not granted: "+r.String())
		}
	}
	for right, example := range used.Missing() {
		p.problems = append(p.problems, fmt.Sprintf("denied: %s %s (%s)", right.Verb, right.Resource, example))
	}
	slices.Sort(p.problems)
	return p
}

func (p Proof) reason(right Right) int {
	return slices.IndexFunc(p.reasons, func(r Reason) bool { return r.covers(right) })
}

// Problems are what the proof fails for.
func (p Proof) Problems() []string { return p.problems }

// Print writes a line for each role, and what of it is held for another reason.
func (p Proof) Print(w io.Writer) {
	total := [4]int{}
	fmt.Fprintf(w, "%-18s %8s %6s %6s %7s\n", "role", "granted", "used", "held", "unused")
	for _, role := range p.roles {
		var n [4]int
		for _, right := range role.Rights() {
			n[0]++
			switch {
			case p.used.Used[right]:
				n[1]++
			case p.reason(right) >= 0:
				n[2]++
			default:
				n[3]++
			}
		}
		fmt.Fprintf(w, "%-18s %8d %6d %6d %7d\n", role.Name, n[0], n[1], n[2], n[3])
		for i := range total {
			total[i] += n[i]
		}
	}
	fmt.Fprintf(w, "%-18s %8d %6d %6d %7d\n", "all", total[0], total[1], total[2], total[3])
	for _, role := range p.roles {
		for _, right := range role.Rights() {
			if at := p.reason(right); at >= 0 && !p.used.Used[right] {
				fmt.Fprintf(w, "  held: %s: %s\n", right, p.reasons[at].Why)
			}
		}
	}
	if len(p.problems) > 0 {
		fmt.Fprintln(w, strings.Join(p.problems, "\n"))
	}
}
