package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console/view"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
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
	var adapters v1alpha1.DynamoGraphDeploymentScalingAdapterList
	var pods corev1.PodList
	var nodes corev1.NodeList
	failed := s.read(r.Context(), &adapters, &pods)
	s.source.remember(r.Context(), &dgd)
	now := time.Now()
	page.Scaling = view.OneScaling(view.ScalingInput{
		Graph: &dgd, Adapters: adapters.Items, Pods: view.IndexPods(pods.Items).Of(&dgd), Moments: s.source.past.of(key), Now: now,
	})
	// Of one namespace, what others hold would count as free.
	if seen, _ := s.source.seen(nodeKind); seen && s.options.Namespace == "" {
		if err := s.source.List(r.Context(), &nodes); err == nil {
			page.Free, page.FreeKnown = view.OneCluster(nodes.Items, pods.Items).Free(), true
		}
	}
	page.Missing = append(s.source.missing(podKind, adapterKind), failed...)
	return title, page
}

// decisions shows what a graph's planner tells of its decisions, if it tells any.
func (s *Server) decisions(w http.ResponseWriter, r *http.Request) {
	data := map[string]any{"All": []view.Decision(nil), "Problem": "", "Pod": ""}
	answer, from, err := s.askPlanner(r.Context(), keyOf(r))
	switch {
	case apierrors.IsForbidden(err):
		data["Problem"] = "You may not get pods/proxy in namespace " + r.PathValue("namespace") + ", through which planners are asked."
	case err != nil:
		data["Problem"] = err.Error()
	default:
		data["All"], data["Pod"] = view.Decisions(answer), from
	}
	s.render(w, "decisions", data)
}

// plannerPorts are where planners answer, the ones tried first first.
var plannerPorts = []int{pod.PortPlanner, pod.PortSystem}

// askPlanner asks the planner's pods one by one until one answers.
func (s *Server) askPlanner(ctx context.Context, key types.NamespacedName) (answer []byte, from string, err error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	var pods corev1.PodList
	if err := s.source.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelGraphName: key.Name}); err != nil {
		return nil, "", err
	}
	err = errors.New("no pod of a planner is ready")
	for i := range pods.Items {
		p := &pods.Items[i]
		if graph.RoleOf(p.Labels[v1alpha1.LabelComponentType]) != graph.RolePlanner || view.PodState(*p).Tone != view.Good {
			continue
		}
		for _, port := range plannerPorts {
			if answer, err = s.scraper.pods.Get().Namespace(p.Namespace).Resource("pods").Name(p.Name + ":" + strconv.Itoa(port)).SubResource("proxy").Suffix("decisions").DoRaw(ctx); err == nil {
				return answer, p.Name, nil
			}
			if apierrors.IsForbidden(err) {
				return nil, "", err
			}
		}
		err = fmt.Errorf("%s tells no decisions: %w", p.Name, err)
	}
	return nil, "", err
}
