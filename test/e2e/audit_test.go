package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// operatorUser is who the operator is to the API server.
var operatorUser = fmt.Sprintf("system:serviceaccount:%s:%s", localenv.OperatorKey.Namespace, localenv.OperatorKey.Name)

// write is a request of the log that changes something.
type write = auditlog.Entry

// mark is the end of the audit log now.
func (w world) mark() int64 {
	w.Helper()
	end, err := auditlog.Of(w.cluster.Kubeconfig).End()
	if err != nil {
		w.Fatal(err)
	}
	return end
}

// since reads the writes of the log after a mark that concern this world. Reads
// of the operator are in the log for the sake of its rights.
func (w world) since(mark int64) []write {
	w.Helper()
	var all []write
	err := auditlog.Of(w.cluster.Kubeconfig).Since(mark, func(e auditlog.Entry) {
		if e.Ref.Namespace == w.namespace && e.Writes() {
			all = append(all, e)
		}
	})
	if err != nil {
		w.Fatal(err)
	}
	return all
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
