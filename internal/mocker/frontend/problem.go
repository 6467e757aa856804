package frontend

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
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
	wire.WriteJSON(w, status, problemBody(status, message))
}

func problemBody(status int, message string) map[string]any {
	return map[string]any{"message": message, "type": http.StatusText(status), "code": status}
}
