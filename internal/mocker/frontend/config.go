package frontend

import (
	"fmt"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/route"
)

// Config is what a frontend was told by its command line and environment.
type Config struct {
	Port int
	// Namespace restricts the models served; empty means all.
	Namespace string
	// Prefix restricts them to namespaces that begin with it, each of which is a
	// set of workers by itself. It goes before Namespace.
	Prefix string
	// Own is, in direct routing, the host of this very pod: its worker serves what
	// names no other.
	Own     string
	Routing route.Options
	// EnforceDisaggregation refuses to serve a request without a prefill worker.
	EnforceDisaggregation bool
	// BlockSize overrides the block size of model cards.
	BlockSize int
	BodyLimit int64
	// Grace is how long connections are still accepted after the end was announced.
	Grace time.Duration
	// Drain is how long answers under way may take after that; a pod's grace period may
	// end them earlier.
	Drain         time.Duration
	MetricsPrefix string
	// Busy are the thresholds every model starts with.
	Busy  Thresholds
	Paths Paths
}

// Paths of the routes that can be moved.
type Paths struct{ Metrics, Models, Health, Live, Chat, Completions, Embeddings, Responses string }

// NewConfig reads a frontend's command line.
func NewConfig(p launch.Program) (Config, error) {
	s, env := p.Settings(), p.Env
	c := Config{
		Namespace:     env["DYN_NAMESPACE"],
		MetricsPrefix: env.String("dynamo_frontend", "DYN_METRICS_PREFIX"),
		Paths: Paths{
			Metrics: env.String("/metrics", "DYN_HTTP_SVC_METRICS_PATH"), Models: env.String("/v1/models", "DYN_HTTP_SVC_MODELS_PATH"),
			Health: env.String("/health", "DYN_HTTP_SVC_HEALTH_PATH"), Live: env.String("/live", "DYN_HTTP_SVC_LIVE_PATH"),
			Chat: env.String("/v1/chat/completions", "DYN_HTTP_SVC_CHAT_PATH"), Completions: env.String("/v1/completions", "DYN_HTTP_SVC_CMP_PATH"),
			Embeddings: env.String("/v1/embeddings", "DYN_HTTP_SVC_EMB_PATH"), Responses: env.String("/v1/responses", "DYN_HTTP_SVC_RESPONSES_PATH"),
		},
	}
	c.Port = s.Int(8000, "DYN_HTTP_PORT", "--http-port", "--port")
	c.Prefix = env["DYN_NAMESPACE_PREFIX"]
	if namespace, ok := s.Value("--namespace"); ok && namespace != c.Prefix {
		c.Namespace, c.Prefix = namespace, ""
	}
	if prefix, ok := s.Value("--namespace-prefix"); ok {
		c.Prefix = prefix
	}
	for _, name := range []*string{&c.Namespace, &c.Prefix} {
		if *name == everywhere {
			*name = ""
		}
	}
	c.Routing.Mode = route.Mode(s.Text(env.String(string(route.RoundRobin), "DYN_ROUTER_MODE"), "--router-mode"))
	s.Fail(c.Routing.Validate())
	if c.Routing.Mode == route.Direct {
		host, err := env.AdvertiseHost()
		s.Fail(err)
		c.Own = host
	}
	c.Routing.OverlapWeight = s.Float(1, "DYN_ROUTER_KV_OVERLAP_SCORE_WEIGHT", "--kv-overlap-score-weight", "--router-kv-overlap-score-weight")
	c.Routing.Temperature = s.Float(0, "DYN_ROUTER_TEMPERATURE", "--router-temperature")
	c.EnforceDisaggregation = s.Switch("--enforce-disagg", env.Bool("DYN_ENFORCE_DISAGG", false))
	c.BlockSize = s.Int(0, "DYN_KV_CACHE_BLOCK_SIZE", "--kv-cache-block-size")
	c.BodyLimit = int64(s.Int(45, "DYN_HTTP_BODY_LIMIT_MB")) << 20
	c.Grace, c.Drain = leaving(s)
	c.Busy = thresholds(s)
	if s.Err != nil {
		return c, fmt.Errorf("dynamo.frontend: %w", s.Err)
	}
	return c, nil
}

// everywhere is the namespace that stands for all of them.
const everywhere = "dynamo"

// allowed says whether models of a namespace are served here.
func (c Config) allowed(namespace string) bool {
	if c.Prefix != "" {
		// No more than that, as in the runtime: a graph whose name goes on from
		// this one's is found too.
		return strings.HasPrefix(namespace, c.Prefix)
	}
	return c.Namespace == "" || c.Namespace == namespace
}

// knownFlags of the frontend; others are worth a warning.
var knownFlags = strings.Fields(`--router-mode --http-port --port --http-host --no-kv-events --kv-events --router-reset-states --namespace
	--kv-cache-block-size --kv-overlap-score-weight --router-temperature --enforce-disagg --active-decode-blocks-threshold
	--active-prefill-tokens-threshold --busy-threshold --kserve-grpc-server --grpc-metrics-port --model-path --model-name --interactive
	--router-replica-sync --no-track-active-blocks --router-ttl --router-max-tree-size --router-prune-target-ratio --store-kv --request-plane
	--tls-cert-path --tls-key-path --metrics-prefix --custom-backend-metrics-endpoint --no-router-track-active-blocks --use-kv-events
	--namespace-prefix --router-kv-events --no-router-kv-events --router-kv-overlap-score-weight --router-kv-overlap-score-credit
	--router-min-initial-workers --router-prefill-load-scale --trust-remote-code --dyn-chat-processor --reasoning-parser --tool-call-parser
	--enable-streaming-reasoning-dispatch --discovery-backend`)

// leaving is how long a frontend accepts connections after its end was announced, and how
// long it finishes answers then: together no longer than it was told, if it was.
func leaving(s *launch.Settings) (grace, drain time.Duration) {
	const told = "DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS"
	limit := s.Duration(accepts+10*time.Minute, told)
	grace = min(accepts, limit)
	return grace, limit - grace
}

// accepts is how long others may take to note that a frontend leaves.
const accepts = 5 * time.Second
