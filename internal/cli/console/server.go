package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console/view"
)

//go:embed assets
var assets embed.FS

// Options say what a console shows, and how.
type Options struct {
	Cluster *connect.Cluster
	// Namespace is empty for all.
	Namespace    string
	AllowChanges bool
	// Port is a free one if 0.
	Port int
}

// place names what is shown.
func (o Options) place() string {
	if o.Namespace == "" {
		return "all namespaces"
	}
	return "namespace " + o.Namespace
}

// Server is a console.
type Server struct {
	options  Options
	listener net.Listener
	access   *access
	source   *source
	scraper  *scraper
	asker    *asker
	checkup  checkup
	// configured is what operators are configured with.
	configured configurations

	mu        sync.Mutex
	questions map[string]question
}

// Listen opens the port, on loopback alone. Nothing is answered before Run.
func Listen(o Options) (*Server, error) { return listen(o, rest.CopyConfig(o.Cluster.Config)) }

func listen(o Options, config *rest.Config) (*Server, error) {
	config.UserAgent = agent
	cluster, err := connect.To(config, o.Namespace)
	if err != nil {
		return nil, err
	}
	o.Cluster = cluster
	s := &Server{options: o, questions: map[string]question{}}
	if s.source, err = newSource(cluster, o.Namespace); err != nil {
		return nil, err
	}
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	s.scraper = newScraper(s.source, core.RESTClient())
	if s.asker, err = newAsker(s.source, config); err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port))); err != nil {
		return nil, fmt.Errorf("open a port for the console: %w", err)
	}
	if s.access, err = newAccess(s.listener.Addr().(*net.TCPAddr).Port, users()); err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	return s, nil
}

// users are those who may connect: who runs this, for whom they run it, and root, who
// may do anything anyway.
func users() []int {
	all := []int{os.Getuid(), 0}
	if id, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil {
		all = append(all, id)
	}
	return all
}

// URL is where to begin. It works once.
func (s *Server) URL() string { return s.access.url() }

// Run serves until the context ends.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, k := range kinds {
		go s.source.follow(ctx, k)
	}
	return s.serve(ctx)
}

// serve answers by what the source has.
func (s *Server) serve(ctx context.Context) error {
	server := &http.Server{
		Handler: s.access.protect(s.routes()), ReadHeaderTimeout: 10 * time.Second, ConnContext: s.access.remember,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 2)
	go func() { failed <- s.source.cache.Start(ctx) }()
	go s.scraper.run(ctx)
	go func() { failed <- server.Serve(s.listener) }()
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-failed:
		if ctx.Err() != nil {
			err = nil
		}
		return errors.Join(err, server.Close())
	}
}

// page is one kind of page: /x shows it, /live/x sends what changes of it.
type page struct {
	path string
	// section is the entry of the menu that it belongs to.
	section string
	// body is its template; blocks are the templates in it that change.
	body   string
	blocks []string
	// kinds are what it shows.
	kinds []kind
	// closely says which graph's traffic it shows; nil for none, an empty name for all.
	closely func(r *http.Request) types.NamespacedName
	data    func(s *Server, r *http.Request) (title string, data any)
}

// sections are the menu.
var sections = []struct{ Path, Name string }{{"/", "Graphs"}, {"/requests", "Requests"}, {"/models", "Models"}, {"/cluster", "Cluster"}}

// list is of all pages.
var list = []page{
	{
		path: "/{$}", section: "/", body: "graphs", blocks: []string{"graphs-summary", "graphs-table"}, kinds: []kind{graphKind, podKind},
		closely: func(*http.Request) types.NamespacedName { return types.NamespacedName{} }, data: (*Server).graphs,
	},
	{
		path: "/graphs/{namespace}/{name}", section: "/", body: "graph", kinds: []kind{graphKind, podKind, eventKind},
		blocks:  []string{"graph-head", "graph-why", "graph-sleep", "graph-picture", "graph-figures", "graph-services", "graph-conditions", "graph-events"},
		closely: keyOf, data: (*Server).graph,
	},
	{
		path: "/graphs/{namespace}/{name}/rollout", section: "/", body: "rollout", kinds: []kind{graphKind},
		blocks: []string{"rollout-head", "rollout-steps", "rollout-capacity", "rollout-generations", "rollout-analysis"}, data: (*Server).rollout,
	},
	{
		path: "/graphs/{namespace}/{name}/scaling", section: "/", body: "scaling", kinds: []kind{graphKind, podKind, adapterKind, componentKind, autoscalerKind},
		blocks: []string{"scaling-head", "scaling-sleep", "scaling-services", "scaling-budgets", "scaling-figures"}, data: (*Server).scaling,
	},
	{
		path: "/graphs/{namespace}/{name}/pods/{pod}", section: "/", body: "pod", blocks: []string{"pod-head"}, kinds: []kind{graphKind, podKind}, data: (*Server).pod,
	},
	{path: "/requests", section: "/requests", body: "requests", blocks: []string{"requests-table"}, kinds: []kind{requestKind}, data: (*Server).requests},
	{
		path: "/requests/{namespace}/{name}", section: "/requests", body: "request", blocks: []string{"request-head", "request-progress", "request-conditions"},
		kinds: []kind{requestKind}, data: (*Server).request,
	},
	{path: "/models", section: "/models", body: "models", blocks: []string{"models-table"}, kinds: []kind{modelKind, podKind}, data: (*Server).models},
	{path: "/cluster", section: "/cluster", body: "cluster", blocks: []string{"cluster-summary", "cluster-nodes", "cluster-doctor"}, kinds: []kind{nodeKind, podKind}, data: (*Server).cluster},
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(files)))
	for _, p := range list {
		mux.HandleFunc("GET "+p.path, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, p) })
		mux.HandleFunc("GET /live"+p.path, func(w http.ResponseWriter, r *http.Request) { s.live(w, r, p) })
	}
	mux.HandleFunc("GET /logs/{namespace}/{pod}/{container}", s.log)
	mux.HandleFunc("GET /reports/{namespace}/{name}", s.report)
	mux.HandleFunc("GET /graphs/{namespace}/{name}/models", s.askable)
	mux.HandleFunc("POST /graphs/{namespace}/{name}/questions", s.ask)
	mux.HandleFunc("GET /answers/{id}", s.answer)
	mux.HandleFunc("GET /graphs/{namespace}/{name}/rollout/history", s.history)
	mux.HandleFunc("GET /graphs/{namespace}/{name}/decisions", s.decisions)
	mux.HandleFunc("POST /graphs/{namespace}/{name}/changes/{change}", s.change)
	mux.HandleFunc("POST /graphs/{namespace}/{name}/rollout/orders/{order}", s.order)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "No such page", "See the graphs instead.")
	})
	return mux
}

func keyOf(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}

// frame is what every page has around its body.
type frame struct {
	Title, Section, Place, Live string
	Sections                    any
	AllowChanges                bool
	Body                        string
	Data                        any
	Banner                      banner
}

// banner says that the API server does not answer.
type banner struct{ Down, Reason string }

func (s *Server) banner() banner {
	since, reason := s.source.reach.down()
	if since.IsZero() {
		return banner{}
	}
	return banner{since.Format(time.TimeOnly), reason}
}

// gone is a page about something that does not exist.
type gone interface{ IsGone() bool }

func (s *Server) show(w http.ResponseWriter, r *http.Request, p page) {
	s.source.settled(r.Context(), p.kinds...)
	title, data := p.data(s, r)
	if g, ok := data.(gone); ok && g.IsGone() {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
	}
	s.render(w, "page", frame{
		Title: title, Section: p.section, Sections: sections, Place: s.options.place(), Live: "/live" + r.URL.RequestURI(),
		AllowChanges: s.options.AllowChanges, Body: p.body, Data: data, Banner: s.banner(),
	})
}

// checkup is what doctor found, and when.
type checkup struct {
	mu       sync.Mutex
	running  bool
	at       time.Time
	findings []view.Finding
}
