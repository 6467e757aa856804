package event

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
)

func change(action apply.Action, kind, name string) apply.Change {
	return apply.Change{Action: action, Kind: schema.GroupVersionKind{Kind: kind}, Key: types.NamespacedName{Name: name}}
}

func TestApplied(t *testing.T) {
	cases := map[string]struct {
		changes apply.ChangeSet
		want    []string
	}{
		"nothing happened, nothing is said": {},
		"one event an action names all objects": {
			changes: apply.ChangeSet{
				change(apply.Created, "Service", "a"), change(apply.Created, "Role", "r"), change(apply.Created, "Service", "b"),
				change(apply.Deleted, "Service", "old"), change(apply.Updated, "Deployment", "d"),
			},
			want: []string{
				"Normal Created Created Service a, b; Role r",
				"Normal Updated Updated Deployment d",
				"Normal Deleted Deleted Service old",
			},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			Applied(recorder, &v1alpha1.DynamoGraphDeployment{}, c.changes)
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("-want +got", diff)
			}
		})
	}
}

func TestANoteIsNeverTooLongForTheAPI(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	Applied(recorder, &v1alpha1.DynamoGraphDeployment{}, apply.ChangeSet{change(apply.Created, "Service", strings.Repeat("x", 2000))})
	if got := strings.TrimPrefix(<-recorder.Events, "Normal Created "); len(got) > limit {
		t.Errorf("a note of %d characters", len(got))
	}
}
