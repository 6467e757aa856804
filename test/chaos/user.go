package chaos

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

const namespace = "chaos"

// service is a part of a graph, in some version.
func service(name string, version, replicas int) *v1alpha1.SharedSpec {
	kind := "worker"
	if name == "Frontend" {
		kind = "frontend"
	}
	n := int32(replicas)
	return &v1alpha1.SharedSpec{
		ComponentType: v1alpha1.ComponentType(kind), Replicas: &n,
		ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: fmt.Sprintf("engine:%d", version), Command: []string{"run"}}},
	}
}

// act does something that users do.
func (m *machine) act() {
	name := fmt.Sprintf("g%d", m.random.IntN(2))
	key := client.ObjectKey{Namespace: namespace, Name: name}
	i := id{v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment), key}
	g, exists := m.server.truth(m.ctx, i).(*v1alpha1.DynamoGraphDeployment)
	if !exists || g == nil {
		g = &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		g.Spec.Services = map[string]*v1alpha1.SharedSpec{"Frontend": service("Frontend", 1, 1), "decode": service("decode", 1, 2)}
		m.note("user: create %s", name)
		m.must(m.server.change(m.ctx, i, func() error { return m.server.WithWatch.Create(m.ctx, g) }))
		return
	}
	switch m.random.IntN(8) {
	case 0:
		m.note("user: delete %s", name)
		m.must(m.server.change(m.ctx, i, func() error { return m.server.WithWatch.Delete(m.ctx, g) }))
		return
	case 1, 2:
		version := 1 + m.random.IntN(5)
		g.Spec.Services["decode"] = service("decode", version, 1+m.random.IntN(3))
		m.note("user: version %d of %s", version, name)
	case 3:
		g.Spec.Services["prefill"] = service("prefill", 1, 1)
		m.note("user: add prefill to %s", name)
	case 4:
		delete(g.Spec.Services, "prefill")
		m.note("user: remove prefill of %s", name)
	default:
		m.meddle()
		return
	}
	m.must(m.server.change(m.ctx, i, func() error { return m.server.WithWatch.Update(m.ctx, g) }))
}

// meddle edits or deletes a child behind the operator's back.
func (m *machine) meddle() {
	var children []id
	for _, i := range m.all() {
		if i.kind.Kind == "Deployment" || i.kind.Kind == "Service" || i.kind.Kind == "Role" {
			children = append(children, i)
		}
	}
	if len(children) == 0 {
		return
	}
	i := children[m.random.IntN(len(children))]
	object := m.server.truth(m.ctx, i)
	if d, ok := object.(*appsv1.Deployment); ok && m.random.IntN(2) == 0 {
		d.Spec.Template.Spec.Containers[0].Image = "somebody-elses:1"
		m.note("user: edit %s", i)
		m.must(m.server.change(m.ctx, i, func() error { return m.server.WithWatch.Update(m.ctx, d) }))
		return
	}
	m.note("user: delete %s", i)
	m.must(m.server.change(m.ctx, i, func() error { return m.server.WithWatch.Delete(m.ctx, object) }))
}
