package operator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
)

// TestListsAreReadInPages: of large objects few at a time, of small ones many.
func TestListsAreReadInPages(t *testing.T) {
	for rule, c := range map[string]struct {
		size, count int
		most        int64
	}{
		"large objects": {1 << 20, 50, firstPage},
		"small ones":    {10, 2000, fullPage},
		"none":          {0, 0, firstPage},
	} {
		t.Run(rule, func(t *testing.T) {
			asked, most := 0, int64(0)
			server := func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
				if options.ResourceVersion != "" || options.Limit == 0 {
					return nil, fmt.Errorf("asked for all at once: %+v", options)
				}
				asked, most = asked+1, max(most, options.Limit)
				from, _ := strconv.Atoi(options.Continue)
				page := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
				for i := from; i < min(c.count, from+int(options.Limit)); i++ {
					page.Items = append(page.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), Annotations: map[string]string{"x": string(make([]byte, c.size))}}})
				}
				if next := from + int(options.Limit); next < c.count {
					page.Continue = strconv.Itoa(next)
				}
				return page, nil
			}
			got, err := pages(server, apply.TrimConfigMap)(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 500})
			if err != nil {
				t.Fatal(err)
			}
			list := got.(*metav1.PartialObjectMetadataList)
			var names, want []string
			for i, item := range list.Items {
				names = append(names, item.Name)
				if item.Annotations != nil {
					t.Fatalf("object %d is whole", i)
				}
			}
			for i := range c.count {
				want = append(want, strconv.Itoa(i))
			}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Error(diff)
			}
			if most != c.most || list.Continue != "" || list.ResourceVersion != "9" {
				t.Errorf("%d pages of at most %d, %+v", asked, most, list.ListMeta)
			}
		})
	}
}

func TestAPageThatIsRefusedIsAnError(t *testing.T) {
	refused := errors.New("expired")
	_, err := pages(func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, refused }, apply.TrimConfigMap)(t.Context(), metav1.ListOptions{})
	if !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
}
