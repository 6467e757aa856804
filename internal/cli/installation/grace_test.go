package installation

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// TestTheOperatorEndsBeforeItIsKilled holds what the operator takes to end against
// the time that its pod is given, in what Kustomize and the chart ship.
func TestTheOperatorEndsBeforeItIsKilled(t *testing.T) {
	c := config.Default()
	c.Webhook.Enabled = true
	given := map[string]int64{}
	objects, err := Operator()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			d := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d); err != nil {
				t.Fatal(err)
			}
			given["Kustomize"] = *d.Spec.Template.Spec.TerminationGracePeriodSeconds
		}
	}
	values, err := os.ReadFile("../../../charts/platform/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?m)^ {4}terminationGracePeriodSeconds: (\d+)$`).FindSubmatch(values); found != nil {
		if given["the chart"], err = strconv.ParseInt(string(found[1]), 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range []string{"Kustomize", "the chart"} {
		// A second for the signal and for the exit.
		if grace := time.Duration(given[where]) * time.Second; c.Longest() > grace-2*time.Second {
			t.Errorf("%s gives %s, and the operator takes up to %s", where, grace, c.Longest())
		}
	}
}
