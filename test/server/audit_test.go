package server

import (
	"fmt"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// mark is the end of the audit log now.
func (w world) mark() int64 {
	w.Helper()
	end, err := auditlog.Of(cluster.Kubeconfig).End()
	if err != nil {
		w.Fatal(err)
	}
	return end
}

// byOperator reads what the operator wrote in this world after a mark.
func (w world) byOperator(mark int64) []auditlog.Entry {
	w.Helper()
	user := fmt.Sprintf("system:serviceaccount:%s:%s", localenv.OperatorKey.Namespace, localenv.OperatorKey.Name)
	var all []auditlog.Entry
	err := auditlog.Of(cluster.Kubeconfig).Since(mark, func(e auditlog.Entry) {
		if e.Ref.Namespace == w.namespace && e.User.Username == user && e.Writes() {
			all = append(all, e)
		}
	})
	if err != nil {
		w.Fatal(err)
	}
	return all
}
