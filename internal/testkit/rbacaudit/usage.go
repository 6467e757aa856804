package rbacaudit

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// Usage is what holders did.
type Usage struct {
	Used map[Right]bool
	// denied are requests that the authorizer refused, with an example of each;
	// granted are those that it did not. Roles of neither are known.
	denied  map[Right]string
	granted map[Right]bool
}

// NewUsage is of those who did nothing yet.
func NewUsage() Usage {
	return Usage{Used: map[Right]bool{}, denied: map[Right]string{}, granted: map[Right]bool{}}
}

// Read adds what an audit log tells.
func (u Usage) Read(log io.Reader, holders []Holder) error {
	return auditlog.Read(log, func(e auditlog.Entry) {
		for _, h := range holders {
			if e.Ref.Resource != "" && h.is(e.User.Username) {
				u.add(e, h.Roles)
			}
		}
	})
}

func (u Usage) add(e auditlog.Entry, roles []Role) {
	what := Right{Verb: e.Verb, Resource: name(e.Ref.Group, join(e.Ref.Resource, e.Ref.Subresource))}
	if e.Annotations["authorization.k8s.io/decision"] == "forbid" {
		u.denied[what] = e.User.Username + " " + e.URI
		return
	}
	verbs := []string{e.Verb}
	if e.Verb == "watch" && strings.Contains(e.URI, "sendInitialEvents=true") {
		verbs = append(verbs, "list") // older servers are asked for a list first
	}
	if e.Verb == "patch" && e.Status.Code == 201 {
		verbs = append(verbs, "create") // an apply that made something
	}
	for _, verb := range verbs {
		u.granted[Right{Verb: verb, Resource: what.Resource}] = true
		u.attribute(verb, e, roles)
	}
}

// attribute finds the role that a request needs: of several that allow it, the
// one that allows the least.
func (u Usage) attribute(verb string, e auditlog.Entry, roles []Role) {
	best, most := "", 0
	for _, role := range roles {
		if narrow, allowed := role.allows(verb, e); allowed && narrow > most {
			best, most = role.Name, narrow
		}
	}
	if best != "" {
		u.Used[Right{best, verb, name(e.Ref.Group, join(e.Ref.Resource, e.Ref.Subresource))}] = true
	}
}

// Missing are requests that were refused and never granted, with an example of
// each. An API server that has just started refuses what it grants a moment
// later.
func (u Usage) Missing() map[Right]string {
	missing := maps.Clone(u.denied)
	maps.DeleteFunc(missing, func(r Right, _ string) bool { return u.granted[r] })
	return missing
}

// Keep copies, of audit logs, what accounts did into a file of a folder, for a
// proof that looks at the logs of several runs.
func Keep(folder, name string, logs []string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(folder, name+".log"))
	if err != nil {
		return err
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return errors.Join(err, out.Close())
		}
		for line := range bytes.Lines(text) {
			if !bytes.HasSuffix(line, []byte("\n")) || !bytes.Contains(line, []byte(`"username":"system:serviceaccount:`)) {
				continue
			}
			if _, err := out.Write(line); err != nil {
				return errors.Join(err, out.Close())
			}
		}
	}
	return out.Close()
}
