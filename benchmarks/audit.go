package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
)

// auditLog is the API server's own account of who asked for what.
type auditLog struct{ path string }

// requests counts requests by verb.
type requests map[string]int

// end is where the log ends now.
func (l *auditLog) end() (int64, error) {
	info, err := os.Stat(l.path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// since counts the operator's requests after a place in the log. Leases are
// left out: renewing one is no work on a graph.
func (l *auditLog) since(offset int64) (requests, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	counts := requests{}
	for lines := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return counts, nil
		}
		if err != nil {
			return nil, err
		}
		var entry struct {
			Verb      string `json:"verb"`
			UserAgent string `json:"userAgent"`
			Ref       struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
			} `json:"objectRef"`
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(entry.UserAgent, "dynamo-operator") || entry.Ref.Resource == "leases" {
			continue
		}
		verb := entry.Verb
		switch {
		case entry.Ref.Resource == "events":
			verb += " event"
		case entry.Ref.Subresource == "status":
			verb += " status"
		}
		counts[verb]++
	}
}

// writes are all requests that change something.
func (r requests) writes() int {
	n := 0
	for verb, count := range r {
		switch strings.Fields(verb)[0] {
		case "get", "list", "watch":
		default:
			n += count
		}
	}
	return n
}
