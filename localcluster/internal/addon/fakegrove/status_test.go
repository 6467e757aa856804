package fakegrove

import (
	"errors"
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARefusalStandsInTheStatusAsLongAsItLasts(t *testing.T) {
	earlier := []grovev1alpha1.LastError{{Description: "exceeded quota", ObservedAt: metav1.Unix(1, 0)}}
	if got := lastErrors(earlier, errors.New("exceeded quota")); len(got) != 1 || got[0].ObservedAt != earlier[0].ObservedAt {
		t.Errorf("the same error is %+v", got)
	}
	if got := lastErrors(earlier, errors.New("forbidden")); len(got) != 1 || got[0].Description != "forbidden" {
		t.Errorf("another error is %+v", got)
	}
	if got := lastErrors(earlier, nil); got != nil {
		t.Errorf("no error is %+v", got)
	}
}
