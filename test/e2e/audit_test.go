package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/playground"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// operatorUser is who the operator is to the API server.
var operatorUser = fmt.Sprintf("system:serviceaccount:%s:%s", playground.OperatorKey.Namespace, playground.OperatorKey.Name)

// reads of the operator are in the log for the sake of its rights.
var reads = []string{"get", "list", "watch"}

// write is a mutating request in the API server's audit log, whatever came of
// it: a patch that changes nothing is there as well.
type write struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb string `json:"verb"`
	Ref  struct {
		Namespace   string `json:"namespace"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

// String leaves out which of several objects it was: a rule is about kinds.
func (w write) String() string {
	resource := w.Ref.Resource
	if w.Ref.Subresource != "" {
		resource += "/" + w.Ref.Subresource
	}
	return w.Verb + " " + resource
}

// made reports whether the request made an object: an apply is a patch that may.
func (w write) made() bool { return w.Status.Code == 201 && w.Ref.Subresource == "" }

// auditLog is where a cluster writes it.
func (w world) auditLog() string {
	return filepath.Join(filepath.Dir(w.cluster.Kubeconfig), "logs", "audit.log")
}

// mark is the end of the audit log now; a request is in the log before it is
// answered.
func (w world) mark() int64 {
	w.Helper()
	info, err := os.Stat(w.auditLog())
	if err != nil {
		w.Fatal(err)
	}
	return info.Size()
}

// since reads the requests of the log after a mark that concern this world.
func (w world) since(mark int64) []write {
	w.Helper()
	file, err := os.Open(w.auditLog())
	if err != nil {
		w.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	if mark > 0 {
		// The mark may lie within a line that was being written.
		if _, err := file.Seek(mark-1, io.SeekStart); err != nil {
			w.Fatal(err)
		}
		if _, err := lines.ReadBytes('\n'); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			w.Fatal(err)
		}
	}
	var all []write
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all // a last line without an end is still being written
		}
		if err != nil {
			w.Fatal(err)
		}
		var one write
		if err := json.Unmarshal(auditlog.Whole(line), &one); err != nil {
			w.Fatalf("audit log: %v", err)
		}
		if one.Ref.Namespace == w.namespace && !slices.Contains(reads, one.Verb) {
			all = append(all, one)
		}
	}
}

// byOperator reads what the operator wrote in this world after a mark.
func (w world) byOperator(mark int64) []write {
	w.Helper()
	return slices.DeleteFunc(w.since(mark), func(one write) bool { return one.User.Username != operatorUser })
}

// settled waits until the operator has written nothing in this world for a
// while: what it tells about a change may come after the change.
func (w world) settled() {
	w.Helper()
	w.quiet(3 * time.Second)
}

// quiet waits until the operator has written nothing in this world for so long.
// One that never rests outlasts the test's patience.
func (w world) quiet(long time.Duration) {
	w.Helper()
	mark, from := w.mark(), time.Now()
	w.eventually(fmt.Sprintf("the operator to be quiet for %s", long), func(context.Context) error {
		if writes := w.byOperator(mark); len(writes) > 0 {
			mark, from = w.mark(), time.Now()
			return errors.New(tally(writes))
		}
		if now := time.Since(from); now < long {
			return fmt.Errorf("quiet for %s only", now)
		}
		return nil
	})
}

// tally counts requests by what they are, in order.
func tally(writes []write) string {
	counts := map[string]int{}
	for _, one := range writes {
		counts[one.String()]++
	}
	var lines []string
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}
