package console

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console/view"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/doctor"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/why"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

//go:embed template
var templates embed.FS

// pages are all templates. What they show is escaped by where it stands.
var pages = load()

func load() *template.Template {
	t := template.New("")
	return template.Must(t.Funcs(template.FuncMap{
		"json": func(v any) (string, error) {
			text, err := json.Marshal(v)
			return string(text), err
		},
		// clean takes out what a reader would not see but be misled by.
		"clean": sanitise.Text,
		// document is the same for text of several lines.
		"document": func(text string) string {
			lines := strings.Split(text, "\n")
			for i := range lines {
				lines[i] = sanitise.Text(lines[i])
			}
			return strings.Join(lines, "\n")
		},
		// body executes the template of a page's body, whose name is data.
		"body": func(name string, data any) (template.HTML, error) {
			var b bytes.Buffer
			err := t.ExecuteTemplate(&b, name, data)
			return template.HTML(b.String()), err //nolint:gosec // it was escaped where it was written
		},
	}).ParseFS(templates, "template/*.html"))
}

func (s *Server) graphs(r *http.Request) (string, any) {
	var graphs v1alpha1.DynamoGraphDeploymentList
	var pods corev1.PodList
	failed := s.read(r.Context(), &graphs, &pods)
	page := view.AllGraphs(graphs.Items, view.IndexPods(pods.Items), s.scraper.traffic, time.Now())
	page.Missing = append(s.source.missing(graphKind, podKind), failed...)
	return "Graphs", page
}

// read fills lists from what is watched, and says in words what did not work.
func (s *Server) read(ctx context.Context, lists ...client.ObjectList) []string {
	var failed []string
	for _, list := range lists {
		if err := s.source.List(ctx, list, client.InNamespace(s.options.Namespace)); err != nil {
			failed = append(failed, err.Error())
		}
	}
	return failed
}

// graphPage is a graph and what only its page shows.
type graphPage struct {
	view.Graph
	Figures []view.Figure
}

// IsGone is for the status of the page.
func (g graphPage) IsGone() bool { return g.Gone }

func (s *Server) graph(r *http.Request) (string, any) {
	key := keyOf(r)
	page := graphPage{Graph: view.Graph{Namespace: key.Namespace, Name: key.Name}}
	var dgd v1alpha1.DynamoGraphDeployment
	if err := s.source.Get(r.Context(), key, &dgd); err != nil {
		page.Gone, page.Missing = apierrors.IsNotFound(err), s.source.missing(graphKind)
		return key.Name, page
	}
	in := view.Input{Graph: &dgd, Now: time.Now(), Loads: s.scraper.of(key).loads}
	var pods corev1.PodList
	var events corev1.EventList
	in.Pods, in.Events = pods.Items, events.Items
	of := client.InNamespace(key.Namespace)
	if err := s.source.List(r.Context(), &pods, of, client.MatchingLabels{v1alpha1.LabelGraphName: key.Name}); err == nil {
		in.Pods = pods.Items
	}
	if err := s.source.List(r.Context(), &events, of); err == nil {
		in.Events = events.Items
	}
	in.Why = s.why(r.Context(), key)
	page.Graph = view.OneGraph(in)
	page.CanChange = s.options.AllowChanges
	page.Missing = s.source.missing(podKind, eventKind)
	seen := s.scraper.of(key)
	page.TrafficMissing = seen.problem
	page.Figures = view.Figures(seen.points)
	return key.Name, page
}

// whyTimeout bounds how long a page waits for an explanation.
const whyTimeout = 2 * time.Second

// why explains a graph by what is watched. What fails is said in its place.
func (s *Server) why(ctx context.Context, key types.NamespacedName) why.Explanation {
	ctx, cancel := context.WithTimeout(ctx, whyTimeout)
	defer cancel()
	found, err := why.Look(ctx, s.source, s.source.logs, key)
	if err != nil {
		return why.Explanation{Steps: []string{"graph " + key.Name}, Cause: "it could not be looked for: " + err.Error()}
	}
	return found
}

// podPage is a pod and the log of one of its containers.
type podPage struct {
	Namespace, Graph, Name string
	Pod                    view.Pod
	Container              string
	Previous, Gone         bool
	Missing                []string
}

// IsGone is for the status of the page.
func (p podPage) IsGone() bool { return p.Gone }

// Log is where the log comes from.
func (p podPage) Log() string {
	path := "/logs/" + p.Namespace + "/" + p.Name + "/" + p.Container
	if p.Previous {
		path += "?previous"
	}
	return path
}

func (s *Server) pod(r *http.Request) (string, any) {
	key := keyOf(r)
	page := podPage{Namespace: key.Namespace, Graph: key.Name, Name: r.PathValue("pod"), Previous: r.URL.Query().Has("previous")}
	var pod corev1.Pod
	err := s.source.Get(r.Context(), types.NamespacedName{Namespace: key.Namespace, Name: page.Name}, &pod)
	if err != nil || pod.Labels[v1alpha1.LabelGraphName] != key.Name {
		page.Gone, page.Missing = err == nil || apierrors.IsNotFound(err), s.source.missing(podKind)
		return page.Name, page
	}
	page.Pod = view.OnePod(pod, key.Name, time.Now())
	page.Container = r.URL.Query().Get("container")
	if !slices.Contains(page.Pod.Containers, page.Container) && len(page.Pod.Containers) > 0 {
		page.Container = page.Pod.Containers[0]
		if slices.Contains(page.Pod.Containers, "main") {
			page.Container = "main"
		}
	}
	return page.Name, page
}

func (s *Server) requests(r *http.Request) (string, any) {
	var all v1alpha1.DynamoGraphDeploymentRequestList
	failed := s.read(r.Context(), &all)
	page := view.AllRequests(all.Items, time.Now())
	page.Missing = append(s.source.missing(requestKind), failed...)
	return "Requests", page
}

// requestPage is a request.
type requestPage struct{ view.Request }

// IsGone is for the status of the page.
func (p requestPage) IsGone() bool { return p.Gone }

func (s *Server) request(r *http.Request) (string, any) {
	key := keyOf(r)
	var one v1alpha1.DynamoGraphDeploymentRequest
	if err := s.source.Get(r.Context(), key, &one); err != nil {
		page := requestPage{view.Request{Gone: apierrors.IsNotFound(err), Missing: s.source.missing(requestKind)}}
		page.Namespace, page.Name = key.Namespace, key.Name
		return key.Name, page
	}
	output, problem := s.output(r.Context(), key)
	page := requestPage{view.OneRequest(&one, output, time.Now())}
	page.OutputMissing = problem
	return key.Name, page
}

// output is what a request's profiler wrote so far.
func (s *Server) output(ctx context.Context, key types.NamespacedName) (data map[string]string, problem string) {
	var cm corev1.ConfigMap
	err := s.options.Cluster.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: graph.ProfilingOutput(key.Name)}, &cm)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "The profiler has written nothing yet."
	case apierrors.IsForbidden(err):
		return nil, "You may not get configmaps in namespace " + key.Namespace + ", where the profiler writes its report."
	case err != nil:
		return nil, "The profiler's output cannot be read: " + err.Error()
	default:
		return cm.Data, ""
	}
}

// report is what the profiler wrote for people: a page of somebody else's making, that
// may do nothing.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	data, problem := s.output(r.Context(), keyOf(r))
	if problem != "" || data[profileoutput.KeyReportHTML] == "" {
		refuse(w, http.StatusNotFound, "No report", problem)
		return
	}
	w.Header().Set("Content-Security-Policy", reportPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(data[profileoutput.KeyReportHTML]))
}

func (s *Server) models(r *http.Request) (string, any) {
	var all v1alpha1.DynamoModelList
	var pods corev1.PodList
	failed := s.read(r.Context(), &all, &pods)
	page := view.AllModels(all.Items, pods.Items)
	page.Missing = append(s.source.missing(modelKind), failed...)
	return "Models", page
}

func (s *Server) cluster(r *http.Request) (string, any) {
	var nodes corev1.NodeList
	var pods corev1.PodList
	var failed []string
	for _, list := range []client.ObjectList{&nodes, &pods} {
		if err := s.source.List(r.Context(), list); err != nil {
			failed = append(failed, err.Error())
		}
	}
	page := view.OneCluster(nodes.Items, pods.Items)
	page.Missing = append(s.source.missing(nodeKind, podKind), failed...)
	if s.options.Namespace != "" && len(page.Nodes) > 0 {
		page.Missing = append(page.Missing, "Only pods of namespace "+s.options.Namespace+" are counted: GPUs that others hold count as free. kubectl dynamo ui --all-namespaces counts all.")
	}
	page.Findings, page.FindingsAge = s.findings()
	for _, f := range page.Findings {
		if f.State.Tone == view.Bad {
			page.Problems++
		}
	}
	return "Cluster", page
}

// Times of doctor's looks: they ask much, so not with every page.
const (
	findingsAge     = time.Minute
	findingsTimeout = 30 * time.Second
)

// findings are doctor's latest; old ones are replaced behind the page's back.
func (s *Server) findings() (latest []view.Finding, age string) {
	c := &s.checkup
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running && time.Since(c.at) > findingsAge {
		c.running = true
		go s.examine()
	}
	if !c.at.IsZero() {
		age = time.Since(c.at).Round(time.Second).String()
	}
	return c.findings, age
}

func (s *Server) examine() {
	ctx, cancel := context.WithTimeout(context.Background(), findingsTimeout)
	defer cancel()
	all, err := doctor.Read(ctx, s.options.Cluster)
	if err != nil {
		all = []doctor.Finding{{Wrong: true, What: "doctor could not look: " + err.Error()}}
	}
	c := &s.checkup
	c.mu.Lock()
	c.findings = view.Findings(all)
	c.at, c.running = time.Now(), false
	c.mu.Unlock()
	s.source.changes.notify()
}

// askable shows the box to ask a graph, with the models that its frontend serves.
func (s *Server) askable(w http.ResponseWriter, r *http.Request) {
	key := keyOf(r)
	models, err := s.asker.models(r.Context(), key)
	data := map[string]any{"Path": "/graphs/" + key.Namespace + "/" + key.Name, "Models": models, "Problem": ""}
	switch {
	case err != nil:
		data["Problem"] = unasked(err, key.Namespace)
	case len(models) == 0:
		var dgd v1alpha1.DynamoGraphDeployment
		if err := s.source.Get(r.Context(), key, &dgd); err == nil {
			data["Problem"] = view.NoModel(&dgd)
		}
	}
	s.render(w, "ask", data)
}
