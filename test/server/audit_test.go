package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/playground"
)

// write is a mutating request in the API server's audit log, whatever came of
// it.
type write struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb string `json:"verb"`
	Ref  struct {
		Namespace string `json:"namespace"`
		Resource  string `json:"resource"`
		Name      string `json:"name"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func (w world) auditLog() *os.File {
	w.Helper()
	file, err := os.Open(filepath.Join(filepath.Dir(cluster.Kubeconfig), "logs", "audit.log"))
	if err != nil {
		w.Fatal(err)
	}
	return file
}

// mark is the end of the audit log now; a request is in the log before it is
// answered.
func (w world) mark() int64 {
	w.Helper()
	log := w.auditLog()
	defer log.Close()
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		w.Fatal(err)
	}
	return end
}

// byOperator reads what the operator wrote in this world after a mark.
func (w world) byOperator(mark int64) []write {
	w.Helper()
	log := w.auditLog()
	defer log.Close()
	if _, err := log.Seek(mark, io.SeekStart); err != nil {
		w.Fatal(err)
	}
	user := fmt.Sprintf("system:serviceaccount:%s:%s", playground.OperatorKey.Namespace, playground.OperatorKey.Name)
	var all []write
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all // a last line without an end is still being written
		}
		var one write
		if err := errors.Join(err, json.Unmarshal(line, &one)); err != nil {
			w.Fatalf("audit log: %v", err)
		}
		if one.Ref.Namespace == w.namespace && one.User.Username == user && !slices.Contains([]string{"get", "list", "watch"}, one.Verb) {
			all = append(all, one)
		}
	}
}
