package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/scale/wake"
)

// changes are what the console can change, by the last part of their path. Each needs
// --allow-changes.
var changes = map[string]func(ctx context.Context, cluster *connect.Cluster, key types.NamespacedName, now time.Time) (said string, err error){
	"restart": restart,
	"wake":    awaken,
}

// restart asks for one controlled restart, as spec.restart says it.
func restart(ctx context.Context, cluster *connect.Cluster, key types.NamespacedName, now time.Time) (string, error) {
	id := "console-" + now.UTC().Format("20060102-150405")
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"restart": map[string]any{"id": id}}})
	if err != nil {
		return "", err
	}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	dgd.Namespace, dgd.Name = key.Namespace, key.Name
	if err := cluster.Patch(ctx, dgd, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(agent)); err != nil {
		return "", fmt.Errorf("restart graph %s: %w", key, err)
	}
	return "Restart " + id + " is asked for. Services restart one after the other.", nil
}

// awaken starts the workers of a graph that sleeps, as kubectl dynamo scale wake does.
func awaken(ctx context.Context, cluster *connect.Cluster, key types.NamespacedName, now time.Time) (string, error) {
	return wake.Tell(ctx, cluster, key, now)
}

// mayChange reports whether changes are allowed, and refuses one that is not.
func (s *Server) mayChange(w http.ResponseWriter) bool {
	if s.options.AllowChanges || GuardChanges.Off() {
		return true
	}
	refuse(w, http.StatusForbidden, "This console changes nothing", "Start it with kubectl dynamo ui --allow-changes.")
	return false
}

// order tells a rollout what somebody pressed, if changes are allowed.
func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	if !s.mayChange(w) {
		return
	}
	number, err := strconv.ParseInt(r.URL.Query().Get("revision"), 10, 64)
	if err != nil {
		http.Error(w, "revision: "+err.Error(), http.StatusBadRequest)
		return
	}
	seen := rollout.Seen{Revision: number, Step: r.URL.Query().Get("step")}
	said, err := rollout.Tell(r.Context(), s.options.Cluster.WithWatch, keyOf(r), rollout.Order(r.PathValue("order")), seen)
	if err != nil {
		// What could not be written is printed, for somebody to commit.
		s.render(w, "said", map[string]any{"Tone": "bad", "Text": err.Error(), "Printed": said})
		return
	}
	s.render(w, "said", map[string]any{"Tone": "good", "Text": said})
}

// change makes one of the changes, if they are allowed.
func (s *Server) change(w http.ResponseWriter, r *http.Request) {
	if !s.mayChange(w) {
		return
	}
	change, known := changes[r.PathValue("change")]
	if !known {
		http.NotFound(w, r)
		return
	}
	said, err := change(r.Context(), s.options.Cluster, keyOf(r), time.Now())
	if err != nil {
		s.render(w, "said", map[string]any{"Tone": "bad", "Text": err.Error()})
		return
	}
	s.render(w, "said", map[string]any{"Tone": "good", "Text": said})
}
