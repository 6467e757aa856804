package operator

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// trimmedEarly are the kinds whose objects may be larger on their way in than in
// the cache: metadata has room for 256 KiB of annotations, and for a record of who
// wrote each of a thousand fields.
func trimmedEarly(kind runtime.Object) toolscache.TransformFunc {
	switch kind.GetObjectKind().GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		return observe.TrimPullSecret
	case corev1.SchemeGroupVersion.WithKind("ConfigMap"):
		return apply.TrimConfigMap
	default:
		return nil
	}
}

// newInformer makes an informer whose peak is bounded as well. A server that
// streams the first state sends object by object, and each is trimmed when it
// comes. From one that does not, lists are read in small pages, each trimmed
// before the next is asked for; client-go would ask for all at once.
func newInformer(from toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if source, ok := from.(*toolscache.ListWatch); ok && source.ListWithContextFunc != nil && !guard.Outlines.Off() {
		if trim := trimmedEarly(kind); trim != nil {
			paged := *source
			paged.ListWithContextFunc = pages(source.ListWithContextFunc, trim)
			from = &paged
		}
	}
	return toolscache.NewSharedIndexInformer(from, kind, resync, indexers)
}

const (
	// firstPage is safe for the largest objects that there are. fullPage is what
	// pages grow to while all of one is smaller than smallPage, in bytes, and
	// shrink from when it is larger than largePage.
	firstPage, fullPage  = 3, 512
	smallPage, largePage = 1 << 20, 4 << 20
)

type lister = func(context.Context, metav1.ListOptions) (runtime.Object, error)

// pages lists all objects in pages, trimmed.
func pages(list lister, trim toolscache.TransformFunc) lister {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		// Only what is read from the store itself comes in pages.
		options.ResourceVersion, options.ResourceVersionMatch, options.Continue = "", "", ""
		var all []runtime.Object
		for options.Limit = firstPage; ; {
			page, err := list(ctx, options)
			if err != nil {
				return nil, err
			}
			size, trimmed, err := trimPage(page, trim)
			if err != nil {
				return nil, err
			}
			all = append(all, trimmed...)
			about, err := meta.ListAccessor(page)
			if err != nil {
				return nil, err
			}
			if options.Continue = about.GetContinue(); options.Continue == "" {
				return page, meta.SetList(page, all)
			}
			switch {
			case size < smallPage:
				options.Limit = min(2*options.Limit, fullPage)
			case size > largePage:
				options.Limit = max(options.Limit/2, firstPage)
			}
		}
	}
}

// trimPage returns what is held of a page, and how large it was.
func trimPage(page runtime.Object, trim toolscache.TransformFunc) (size int, trimmed []runtime.Object, err error) {
	err = meta.EachListItem(page, func(item runtime.Object) error {
		if sized, ok := item.(interface{ Size() int }); ok {
			size += sized.Size()
		}
		held, err := trim(item)
		if object, ok := held.(runtime.Object); ok && err == nil {
			trimmed = append(trimmed, object)
		}
		return err
	})
	return size, trimmed, err
}
