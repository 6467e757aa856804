package queue

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// maxCauses causes are kept of one reconcile; the rest is noise.
const maxCauses = 8

// Causes remember why objects of one controller stand in line, for those who
// want to know. A nil Causes remembers nothing.
type Causes struct {
	mu    sync.Mutex
	known map[reconcile.Request][]string
}

func (c *Causes) note(why string, items []reconcile.Request) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[reconcile.Request][]string{}
	}
	for _, item := range items {
		if len(c.known[item]) < maxCauses {
			c.known[item] = append(c.known[item], why)
		}
	}
}

// Take returns what brought an object here and forgets it. Nothing means that it
// changed itself, or that it is tried again.
func (c *Causes) Take(item reconcile.Request) []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	why := c.known[item]
	delete(c.known, item)
	return why
}

// named is what can be said of any object.
type named interface {
	GetName() string
	GetObjectKind() schema.ObjectKind
}

func describe(verb string, object named) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" { // typed objects carry it in their type alone
		kind = reflect.TypeOf(object).Elem().Name()
	}
	return fmt.Sprintf("%s %s %s", kind, object.GetName(), verb)
}
