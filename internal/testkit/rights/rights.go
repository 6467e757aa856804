// Package rights holds the rights that were granted against the API server's
// audit log: what was never used is too much, what was refused is too little.
package rights

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Right is one verb on one resource. The resource carries its subresource and
// its group, as in deployments/scale.apps.
type Right struct {
	Verb, Resource string
}

func (r Right) String() string { return r.Verb + " " + r.Resource }

// Usage is what one user did.
type Usage struct {
	Used map[Right]bool
	// Denied are requests that the authorizer refused, with an example of each.
	Denied map[Right]string
}

// entry is the part of an audit event that counts.
type entry struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	Ref        *struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

// Read reads an audit log. A last line that is still being written is left out.
func Read(log io.Reader, user string) (Usage, error) {
	usage := Usage{Used: map[Right]bool{}, Denied: map[Right]string{}}
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return usage, nil
		}
		if err != nil {
			return usage, err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return usage, fmt.Errorf("read audit log: %w", err)
		}
		if e.User.Username == user && e.Ref != nil {
			usage.add(e)
		}
	}
}

func (u Usage) add(e entry) {
	right := Right{e.Verb, name(e.Ref.Group, join(e.Ref.Resource, e.Ref.Subresource))}
	if e.Annotations["authorization.k8s.io/decision"] == "forbid" {
		u.Denied[right] = e.RequestURI
		return
	}
	u.Used[right] = true
	if e.Verb == "watch" && strings.Contains(e.RequestURI, "sendInitialEvents=true") {
		u.Used[Right{"list", right.Resource}] = true // older servers are asked for a list first
	}
	if e.Verb == "patch" && e.Status.Code == 201 {
		u.Used[Right{"create", right.Resource}] = true // an apply that made something
	}
}

func join(resource, sub string) string {
	if sub == "" {
		return resource
	}
	return resource + "/" + sub
}

func name(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// Granted are the rights that rules give.
func Granted(rules []rbacv1.PolicyRule) []Right {
	all := map[Right]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[Right{verb, name(group, resource)}] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b Right) int { return strings.Compare(a.String(), b.String()) })
}

// Unused are rights that were granted and not used.
func (u Usage) Unused(granted []Right) []Right {
	return slices.DeleteFunc(slices.Clone(granted), func(r Right) bool { return u.Used[r] })
}

// Missing are rights that were refused and never granted to any request, with an
// example of each. An API server that has just started refuses what it grants a
// moment later.
func (u Usage) Missing() map[Right]string {
	missing := maps.Clone(u.Denied)
	maps.DeleteFunc(missing, func(r Right, _ string) bool { return u.Used[r] })
	return missing
}
