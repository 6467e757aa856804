// Package auditlog reads an API server's audit log while servers that write it
// run, and while they are killed.
package auditlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Log is the path of a log.
type Log string

// Of is the log of the local cluster that a kubeconfig belongs to.
func Of(kubeconfig string) Log {
	return Log(filepath.Join(filepath.Dir(kubeconfig), "logs", "audit.log"))
}

// Entry is one request, whatever came of it: a patch that changes nothing is
// there as well.
type Entry struct {
	// ID is that of the request. One that goes on, such as a watch, has two entries: one
	// of StageStarted, and one when it ends.
	ID    string `json:"auditID"`
	Stage string `json:"stage"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	UserAgent string `json:"userAgent"`
	URI       string `json:"requestURI"`
	Verb      string `json:"verb"`
	Ref       struct {
		Namespace   string `json:"namespace"`
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
		APIVersion  string `json:"apiVersion"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
	// Answered is when the response was complete.
	Answered    time.Time         `json:"stageTimestamp"`
	Annotations map[string]string `json:"annotations"`
}

// StageStarted is the stage of a request that was begun to be answered.
const StageStarted = "ResponseStarted"

// Writes reports whether the request would change something.
func (e Entry) Writes() bool {
	switch e.Verb {
	case "get", "list", "watch":
		return false
	default:
		return true
	}
}

// Applies reports whether the request is an apply that takes fields from others, as
// all of the operator's do: no other patch can be forced.
func (e Entry) Applies() bool {
	return e.Verb == "patch" && strings.Contains(e.URI, "force=true")
}

// Made reports whether the request made an object: an apply is a patch that may.
func (e Entry) Made() bool { return e.Status.Code == 201 && e.Ref.Subresource == "" }

// String leaves out which of several objects it was: a rule is about kinds.
func (e Entry) String() string {
	resource := e.Ref.Resource
	if e.Ref.Subresource != "" {
		resource += "/" + e.Ref.Subresource
	}
	return e.Verb + " " + resource
}

// End is where the log ends now; a request is in the log before it is answered.
func (l Log) End() (int64, error) {
	info, err := os.Stat(string(l))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Since hands on the requests after a place in the log. A line that was being
// written at that place counts as before it; a last one that is still being
// written is left to the next time.
func (l Log) Since(place int64, each func(Entry)) error {
	file, err := os.Open(string(l))
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(max(0, place-1), io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(file, 1<<20)
	if place > 0 {
		if _, err := lines.ReadBytes('\n'); err != nil { // the end of what stands before the place
			return ignoreEOF(err)
		}
	}
	return Read(lines, each)
}

// Read hands on all requests of a log but a last one that is still being written.
func Read(log io.Reader, each func(Entry)) error {
	for lines := bufio.NewReaderSize(log, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return ignoreEOF(err)
		}
		var e Entry
		if err := json.Unmarshal(lastEvent(line), &e); err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		each(e)
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// event is how each line begins.
var event = []byte(`{"kind":"Event","apiVersion":"audit.k8s.io/`)

// lastEvent is a line of the log without what stands before it of another: a server
// that was killed may have left a line without an end.
func lastEvent(line []byte) []byte {
	return line[max(0, bytes.LastIndex(line, event)):]
}
