package namespacescope

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// TestAScopeLeavesTheConnectionOfOthersAlone: a limit of seconds that is meant for
// Leases would end the watch of every informer.
func TestAScopeLeavesTheConnectionOfOthersAlone(t *testing.T) {
	cfg := config.Default()
	cfg.Leader.Enabled, cfg.Leader.Namespace = true, "dynamo-system"
	cluster := &rest.Config{Host: "http://127.0.0.1:1", UserAgent: "operator"}
	if _, err := NewScope(cfg, cluster); err != nil {
		t.Fatal(err)
	}
	type limits struct{ Timeout, UserAgent any }
	if diff := cmp.Diff(limits{(&rest.Config{}).Timeout, "operator"}, limits{cluster.Timeout, cluster.UserAgent}); diff != "" {
		t.Errorf("the connection of others (-want +got):\n%s", diff)
	}
}
