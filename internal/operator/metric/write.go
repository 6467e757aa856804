package metric

import (
	"net/http"
	"strconv"
	"strings"
)

// Transport counts the mutating requests that pass through.
func (m *Metrics) Transport(next http.RoundTripper) http.RoundTripper {
	return counting{m, next}
}

type counting struct {
	metrics *Metrics
	next    http.RoundTripper
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if write, ok := WriteOf(request); ok && write.Resource != "leases" {
		code := "none" // nobody answered
		if err == nil {
			code = strconv.Itoa(response.StatusCode)
		}
		c.metrics.writes.WithLabelValues(write.Resource, write.Verb, code).Inc()
	}
	return response, err
}

// Write is a mutating request.
type Write struct {
	// Resource is plural, with the subresource after a slash.
	Resource              string
	Verb, Namespace, Name string
}

// WriteOf reads a request to the API server; ok is false for one that changes
// nothing. Reviews ask a question by a POST and change nothing either.
func WriteOf(request *http.Request) (w Write, ok bool) {
	switch request.Method {
	case http.MethodPost:
		w.Verb = "create"
	case http.MethodPut:
		w.Verb = "update"
	case http.MethodDelete:
		w.Verb = "delete"
	case http.MethodPatch:
		w.Verb = "patch"
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
			w.Verb = "apply"
		}
	default:
		return w, false
	}
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return w, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		w.Namespace, parts = parts[1], parts[2:]
	}
	w.Resource = parts[0]
	if len(parts) > 1 {
		w.Name = parts[1]
	}
	if len(parts) > 2 {
		w.Resource += "/" + parts[2]
	}
	return w, !strings.HasSuffix(parts[0], "reviews")
}
