// Package admission serves the validating webhooks: a thin adapter from
// admission requests to package validation, the server that takes them, and the
// registration by which the API server finds it. It has no rule of its own.
package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/apikind"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Kind is a kind that is asked about.
type Kind = apikind.Kind

// Kinds are all of our API that people write.
var Kinds = apikind.All

// Handler answers for one kind.
type Handler struct {
	Kind  Kind
	Scope validation.Scope
	// Operator is the user that the operator itself is. It is asked the same
	// rules, but needs no warnings about what it writes.
	Operator string
	// Capabilities are the optional APIs that the cluster serves.
	Capabilities Capabilities
}

// Capabilities tells which optional APIs the cluster serves, for warnings.
type Capabilities func(context.Context) (snapshot.Capabilities, error)

// capabilitiesTimeout bounds how long a request waits for an informer that has not
// synced yet.
const capabilitiesTimeout = time.Second

// scope is what the rules depend on now. Nothing is refused because the optional APIs
// are unknown.
func (h Handler) scope(ctx context.Context) validation.Scope {
	scope := h.Scope
	if h.Capabilities == nil {
		return scope
	}
	ctx, cancel := context.WithTimeout(ctx, capabilitiesTimeout)
	defer cancel()
	if have, err := h.Capabilities(ctx); err == nil {
		scope.Orchestrate = func(annotations map[string]string) validation.Orchestration {
			return validation.Orchestration{Provider: workload.Choose(annotations, have, ""), WithoutKAI: !have.All(snapshot.APIKAI)}
		}
	}
	return scope
}

// Handle judges one request.
func (h Handler) Handle(ctx context.Context, request ctrladmission.Request) ctrladmission.Response {
	if request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return ctrladmission.Allowed("")
	}
	object, err := h.decode(request.Object.Raw)
	if err != nil {
		return ctrladmission.Errored(http.StatusBadRequest, err)
	}
	var v validation.Verdict
	if request.Operation == admissionv1.Create {
		v = validation.Create(object, h.scope(ctx))
	} else {
		old, err := h.decode(request.OldObject.Raw)
		if err != nil {
			// What is stored cannot be read, so whatever replaces it is no worse.
			old = h.Kind.New()
		}
		v = validation.Update(old, object, h.scope(ctx))
	}
	response := ctrladmission.Allowed("")
	if len(v.Problems) > 0 {
		response = denied(h.Kind, object.GetName(), v.Problems)
	}
	if request.UserInfo.Username != h.Operator || h.Operator == "" {
		response.Warnings = v.Warnings
	}
	return response
}

func (h Handler) decode(raw []byte) (graph.Object, error) {
	object := h.Kind.New()
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("read %s: %w", h.Kind.Name, err)
	}
	return object, nil
}

// denied names every problem in the message, for people, and as a cause, for
// programs.
func denied(kind Kind, name string, problems field.ErrorList) ctrladmission.Response {
	details := &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: kind.Name, Name: name}
	var lines []string
	for _, e := range validation.Brief(problems) {
		lines = append(lines, e.Error())
		details.Causes = append(details.Causes, metav1.StatusCause{Type: metav1.CauseType(e.Type), Field: e.Field, Message: e.ErrorBody()})
	}
	return ctrladmission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: strings.Join(lines, "\n"), Details: details,
		},
	}}
}
