package frontend

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// failure is an error with an HTTP status.
type failure struct {
	status  int
	message string
}

func (f *failure) Error() string { return f.message }

func fail(status int, format string, values ...any) *failure {
	return &failure{status: status, message: fmt.Sprintf(format, values...)}
}

// unavailable is what overload and lost workers look like to a client.
func unavailable(format string, values ...any) *failure {
	return fail(http.StatusServiceUnavailable, "Service temporarily unavailable: "+format, values...)
}

// statusOf finds the HTTP status of an error; unknown ones are the server's fault.
func statusOf(err error) int {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.status
	}
	return http.StatusInternalServerError
}

// problem answers with the runtime's flat error body.
func problem(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, problemBody(status, message))
}

func problemBody(status int, message string) map[string]any {
	return map[string]any{"message": message, "type": http.StatusText(status), "code": status}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone; there is nobody left to tell.
	_ = json.NewEncoder(w).Encode(body)
}
