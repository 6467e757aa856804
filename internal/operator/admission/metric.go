package admission

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
)

var answers = metric.NewAnswers(metrics.Registry)

// measured counts what a handler says.
func measured(kind Kind, handler ctrladmission.Handler) ctrladmission.Handler {
	return ctrladmission.HandlerFunc(func(ctx context.Context, request ctrladmission.Request) ctrladmission.Response {
		begin := time.Now()
		response := handler.Handle(ctx, request)
		refusal := ""
		if !response.Allowed {
			refusal = reason(response)
		}
		answers.Given(kind.Name, string(request.Operation), time.Since(begin), refusal)
		return response
	})
}

// reason is a word of a small set: the type of the first problem.
func reason(response ctrladmission.Response) string {
	if r := response.Result; r != nil && r.Details != nil && len(r.Details.Causes) > 0 {
		return string(r.Details.Causes[0].Type)
	}
	return "Undecodable"
}
