package console

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console/view"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/scale"
)

// rolloutPage is the rollout of a graph.
type rolloutPage struct{ view.Rollout }

// IsGone is for the status of the page.
func (p rolloutPage) IsGone() bool { return p.Gone }

func (s *Server) rollout(r *http.Request) (string, any) {
	key := keyOf(r)
	page := rolloutPage{view.Rollout{Namespace: key.Namespace, Name: key.Name}}
	title := "Rollout of " + key.Name
	var dgd v1alpha1.DynamoGraphDeployment
	if err := s.source.Get(r.Context(), key, &dgd); err != nil {
		page.Gone, page.Missing = apierrors.IsNotFound(err), s.source.missing(graphKind)
		return title, page
	}
	s.source.remember(r.Context(), &dgd)
	now := time.Now()
	page.Rollout = view.OneRollout(&dgd, s.source.past.of(key), now)
	page.CanChange = s.options.AllowChanges
	return title, page
}

// history shows what is remembered of earlier rollouts. It is asked for, not watched:
// it changes once a rollout.
func (s *Server) history(w http.ResponseWriter, r *http.Request) {
	key := keyOf(r)
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTimeout)
	defer cancel()
	all, err := rollout.History(ctx, s.options.Cluster.WithWatch, key)
	problem := ""
	switch {
	case apierrors.IsForbidden(err):
		problem = "You may not get dynamographdeployments and list controllerrevisions in namespace " + key.Namespace + ", where earlier rollouts are remembered."
	case err != nil:
		problem = "Earlier rollouts cannot be read: " + err.Error()
	}
	s.render(w, "rollout-history", map[string]any{"All": all, "Problem": problem})
}

// scalingPage is the replicas of a graph.
type scalingPage struct{ view.Scaling }

// IsGone is for the status of the page.
func (p scalingPage) IsGone() bool { return p.Gone }

func (s *Server) scaling(r *http.Request) (string, any) {
	key := keyOf(r)
	page := scalingPage{view.Scaling{Namespace: key.Namespace, Name: key.Name}}
	title := "Scaling of " + key.Name
	var dgd v1alpha1.DynamoGraphDeployment
	if err := s.source.Get(r.Context(), key, &dgd); err != nil {
		page.Gone, page.Missing = apierrors.IsNotFound(err), s.source.missing(graphKind)
		return title, page
	}
	explained, err := scale.Look(r.Context(), s.source, key)
	if err != nil {
		page.Missing = []string{"What was asked for cannot be read: " + err.Error()}
		return title, page
	}
	var pods corev1.PodList
	var nodes corev1.NodeList
	failed := s.read(r.Context(), &pods)
	s.source.remember(r.Context(), &dgd)
	configured, unknown := s.budgets(key.Namespace)
	everywhere := s.options.Namespace == ""
	page.Scaling = view.OneScaling(view.ScalingInput{
		Graph: &dgd, Explained: explained, Pods: pods.Items, Moments: s.source.past.of(key), Configured: configured, Everywhere: everywhere, Now: time.Now(),
	})
	page.BudgetsMissing = unknown
	page.CanChange = s.options.AllowChanges
	// Of one namespace, what others hold would count as free.
	if seen, _ := s.source.seen(nodeKind); seen && everywhere {
		if err := s.source.List(r.Context(), &nodes); err == nil {
			page.Free, page.FreeKnown = view.OneCluster(nodes.Items, pods.Items).Free(), true
		}
	}
	page.Missing = append(s.source.missing(podKind, adapterKind, componentKind, autoscalerKind), failed...)
	return title, page
}

// decisions shows what a graph's planner tells of its decisions, if it tells any. Its last
// one outlives it in the graph.
func (s *Server) decisions(w http.ResponseWriter, r *http.Request) {
	key := keyOf(r)
	data := map[string]any{"All": []view.Decision(nil), "Problem": "", "Teller": ""}
	answer, from, err := s.askPlanner(r.Context(), key)
	if err == nil {
		data["All"], data["Teller"] = view.Decisions(answer), from
		s.render(w, "decisions", data)
		return
	}
	data["Problem"] = err.Error()
	if apierrors.IsForbidden(err) {
		data["Problem"] = "You may not get pods/proxy in namespace " + key.Namespace + ", through which planners are asked."
	}
	var dgd v1alpha1.DynamoGraphDeployment
	if err := s.source.Get(r.Context(), key, &dgd); err == nil && dgd.Annotations[v1alpha1.AnnotationScalePlan] != "" {
		data["All"], data["Teller"] = view.Decisions([]byte("["+dgd.Annotations[v1alpha1.AnnotationScalePlan]+"]")), "the graph's annotation "+v1alpha1.AnnotationScalePlan
	}
	s.render(w, "decisions", data)
}

// askPlanner asks the graph's planner.
func (s *Server) askPlanner(ctx context.Context, key types.NamespacedName) (answer []byte, from string, err error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	var pods corev1.PodList
	if err := s.source.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelGraphName: key.Name}); err != nil {
		return nil, "", err
	}
	return scale.AskPlanner(ctx, s.scraper.pods, pods.Items)
}
