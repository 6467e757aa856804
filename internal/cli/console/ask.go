package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console/view"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/openai"
)

// Bounds of a question.
const (
	longestQuestion = 16 << 10
	longestAnswer   = 512
	askTimeout      = 5 * time.Minute
	openQuestions   = 32
)

// question waits for the page to follow its answer.
type question struct {
	key         types.NamespacedName
	model, text string
	tokens      int
}

// asker puts questions to graphs through the API server's proxy of Services, with the
// caller's rights.
type asker struct {
	source *source
	http   *http.Client
	// base is the API server's address.
	base string
}

func newAsker(s *source, config *rest.Config) (*asker, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return &asker{source: s, http: c, base: strings.TrimSuffix(base.String(), "/")}, nil
}

// frontend talks to a graph's frontend.
func (a *asker) frontend(ctx context.Context, key types.NamespacedName) (openai.Client, error) {
	var dgd v1alpha1.DynamoGraphDeployment
	if err := a.source.Get(ctx, key, &dgd); err != nil {
		return openai.Client{}, err
	}
	for name, service := range dgd.Spec.SortedServices() {
		if view.RoleOf(service) == graph.RoleFrontend {
			return openai.Client{HTTP: a.http, URL: fmt.Sprintf("%s/api/v1/namespaces/%s/services/%s:%d/proxy", a.base, key.Namespace, graph.ServiceName(key.Name, name), pod.PortHTTP)}, nil
		}
	}
	return openai.Client{}, fmt.Errorf("graph %s has no frontend to ask", key.Name)
}

// models are those that a graph's frontend serves.
func (a *asker) models(ctx context.Context, key types.NamespacedName) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	frontend, err := a.frontend(ctx, key)
	if err != nil {
		return nil, err
	}
	return frontend.Models(ctx)
}

// answered is how an answer came.
type answered struct {
	Tokens, Prompt, Cached int
	FirstToken, Each       string
	Whole                  string
	Prefill, Decode        worker
	Told                   bool
}

// worker is who answered.
type worker struct{ Name, Path string }

// ask streams an answer piece by piece and says how it came.
func (a *asker) ask(ctx context.Context, q question, each func(piece string)) (answered, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	frontend, err := a.frontend(ctx, q.key)
	if err != nil {
		return answered{}, err
	}
	var out answered
	var workers *openai.Workers
	begin := time.Now()
	var first, last time.Time
	pieces := 0
	err = frontend.Chat(ctx, q.model, q.text, map[string]any{
		"max_tokens": q.tokens, "stream_options": map[string]any{"include_usage": true}, "nvext": map[string]any{"extra_fields": []string{"worker_id"}},
	}, func(c openai.Chunk) {
		if text := c.Text(); text != "" {
			if last = time.Now(); first.IsZero() {
				first = last
			}
			pieces++
			each(text)
		}
		if c.Usage != nil {
			out.Tokens, out.Prompt, out.Cached = c.Usage.CompletionTokens, c.Usage.PromptTokens, c.Usage.Details.CachedTokens
		}
		if c.Extension.Workers != nil {
			workers = c.Extension.Workers
		}
	})
	if first.IsZero() {
		return out, err
	}
	out.FirstToken, out.Whole = milliseconds(first.Sub(begin)), milliseconds(last.Sub(begin))
	if out.Tokens == 0 {
		out.Tokens = pieces
	}
	if out.Tokens > 1 {
		out.Each = milliseconds(last.Sub(first) / time.Duration(out.Tokens-1))
	}
	if workers != nil {
		out.Told = true
		names := a.instances(ctx, q.key)
		out.Prefill, out.Decode = names.of(workers.Prefill), names.of(workers.Decode)
	}
	return out, err
}

func milliseconds(d time.Duration) string {
	return view.Round(float64(d)/float64(time.Millisecond)) + " ms"
}

// instances are the pods of a namespace by the number that they have among workers.
type instances struct {
	key  types.NamespacedName
	pods map[uint64]string
}

// instances reads what workers published of themselves. Who may not read that sees
// the number.
func (a *asker) instances(ctx context.Context, key types.NamespacedName) instances {
	all := instances{key, map[uint64]string{}}
	var list v1alpha1.DynamoWorkerMetadataList
	if err := a.source.cluster.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return all
	}
	for _, m := range list.Items {
		var data struct {
			Endpoints map[string]struct {
				Instance uint64 `json:"instance_id"`
			} `json:"endpoints"`
		}
		if m.Spec == nil || json.Unmarshal(m.Spec.Data.Raw, &data) != nil {
			continue // another release's, or nobody's
		}
		for _, e := range data.Endpoints {
			all.pods[e.Instance] = m.Name
		}
	}
	return all
}

func (i instances) of(id uint64) worker {
	if name := i.pods[id]; name != "" {
		return worker{name, "/graphs/" + i.key.Namespace + "/" + i.key.Name + "/pods/" + name}
	}
	return worker{Name: "worker " + strconv.FormatUint(id, 16)}
}

// unasked says in words why a question has no answer.
func unasked(err error, namespace string) string {
	if apierrors.IsForbidden(err) || strings.Contains(err.Error(), "403 Forbidden") {
		return "You may not create services/proxy in namespace " + namespace + ", through which graphs are asked."
	}
	return "No answer: " + err.Error()
}
