package installation

import (
	"strings"
	"testing"
)

func TestTheOperatorComesAfterWhatItNeeds(t *testing.T) {
	objects, err := Operator()
	if err != nil {
		t.Fatal(err)
	}
	if first, last := objects[0].GetKind(), objects[len(objects)-1]; first != "Namespace" || last.GetName() != Deployment {
		t.Errorf("the first is a %s, the last is %s", first, last.GetName())
	}
}

// TestNamesAreOurs keeps an installation from touching what is not part of it.
func TestNamesAreOurs(t *testing.T) {
	objects, err := Operator()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if !strings.HasPrefix(object.GetName(), "dynamo-") {
			t.Errorf("%s is called %s", object.GetKind(), object.GetName())
		}
	}
}

func TestDefinitionsAreShipped(t *testing.T) {
	definitions, err := Definitions()
	if err != nil || len(definitions) != 7 {
		t.Errorf("%d definitions, %v", len(definitions), err)
	}
}
