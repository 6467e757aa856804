package conversion

import (
	"cmp"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// GraphToBeta turns a graph into v1beta1.
func GraphToBeta(in *v1alpha1.DynamoGraphDeployment) (*v1beta1.DynamoGraphDeployment, []string) {
	return graphToBeta(in.DeepCopy())
}

func graphToBeta(in *v1alpha1.DynamoGraphDeployment) (*v1beta1.DynamoGraphDeployment, []string) {
	var ignored []string
	written := WrittenAs(in)
	payload, present, readable := take[v1beta1.DynamoGraphDeploymentSpec](&in.ObjectMeta, v1alpha1.AnnotationGraphPayload)
	if present && !readable {
		ignored = append(ignored, "payload")
	}
	out := &v1beta1.DynamoGraphDeployment{ObjectMeta: in.ObjectMeta, Spec: upGraph(&in.Spec), Status: upGraphStatus(&in.Status)}
	out.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))

	kept := map[string]*v1beta1.Component{}
	order := make([]string, len(payload.Spec.Components))
	for i := range payload.Spec.Components {
		c := &payload.Spec.Components[i]
		kept[c.Name], order[i] = c, c.Name
	}
	back := envelope[v1alpha1.DynamoGraphDeploymentSpec]{}
	back.Spec.PVCs = in.Spec.PVCs
	for name, service := range in.Spec.SortedServices() {
		c := up(name, service)
		plain := down(&c)
		if k := kept[name]; k != nil && beyond(k) {
			restored, whole := restoreComponent(&c, plain, k)
			c = *restored
			if !whole {
				ignored = append(ignored, "component "+name)
			}
		}
		out.Spec.Components = append(out.Spec.Components, c)
		saved, special := remember(service, plain)
		if in.Spec.Services[name] == nil {
			saved, special = nil, true
		}
		if special {
			if back.Spec.Services == nil {
				back.Spec.Services = map[string]*v1alpha1.SharedSpec{}
			}
			back.Spec.Services[name] = saved
		}
	}
	reorder(out.Spec.Components, order, func(c v1beta1.Component) string { return c.Name })
	if written == Alpha || len(back.Spec.PVCs) > 0 || len(back.Spec.Services) > 0 {
		put(&out.ObjectMeta, v1alpha1.AnnotationGraphPayload, back)
		annotate(&out.ObjectMeta, v1alpha1.AnnotationWrittenAs, written)
	}
	return out, ignored
}

// GraphToAlpha turns a graph into v1alpha1.
func GraphToAlpha(in *v1beta1.DynamoGraphDeployment) (*v1alpha1.DynamoGraphDeployment, []string) {
	return graphToAlpha(in.DeepCopy())
}

func graphToAlpha(in *v1beta1.DynamoGraphDeployment) (*v1alpha1.DynamoGraphDeployment, []string) {
	var ignored []string
	word := in.Annotations[v1alpha1.AnnotationWrittenAs]
	payload, present, readable := take[v1alpha1.DynamoGraphDeploymentSpec](&in.ObjectMeta, v1alpha1.AnnotationGraphPayload)
	if present && !readable {
		ignored = append(ignored, "payload")
	}
	out := &v1alpha1.DynamoGraphDeployment{ObjectMeta: in.ObjectMeta, Spec: downGraph(&in.Spec), Status: downGraphStatus(&in.Status)}
	out.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))
	out.Spec.PVCs = payload.Spec.PVCs

	back := envelope[v1beta1.DynamoGraphDeploymentSpec]{}
	special := false
	for i := range in.Spec.Components {
		c := &in.Spec.Components[i]
		service := down(c)
		if k, ok := payload.Spec.Services[c.Name]; ok {
			if k == nil {
				if same(*service, v1alpha1.SharedSpec{}) {
					service = nil
				}
			} else {
				restored, whole := restoreService(c, k)
				service = restored
				if !whole {
					ignored = append(ignored, "service "+c.Name)
				}
			}
		}
		if out.Spec.Services == nil {
			out.Spec.Services = make(map[string]*v1alpha1.SharedSpec, len(in.Spec.Components))
		}
		out.Spec.Services[c.Name] = service
		if service == nil {
			service = &v1alpha1.SharedSpec{}
		}
		home := up(c.Name, service)
		saved, differs := rememberComponent(c, &home)
		back.Spec.Components = append(back.Spec.Components, saved)
		special = special || differs
	}
	written := origin(word, present, special)
	if !slices.IsSortedFunc(in.Spec.Components, func(a, b v1beta1.Component) int { return cmp.Compare(a.Name, b.Name) }) {
		special = true
	}
	if special {
		put(&out.ObjectMeta, v1alpha1.AnnotationGraphPayload, back)
	}
	if written == Beta {
		annotate(&out.ObjectMeta, v1alpha1.AnnotationWrittenAs, Beta)
	}
	return out, ignored
}

// upGraph converts all but the components.
func upGraph(in *v1alpha1.DynamoGraphDeploymentSpec) v1beta1.DynamoGraphDeploymentSpec {
	out := v1beta1.DynamoGraphDeploymentSpec{
		Env:               in.Envs,
		BackendFramework:  string(in.BackendFramework),
		Annotations:       in.Annotations,
		Labels:            in.Labels,
		PriorityClassName: in.PriorityClassName,
		ProviderOverride:  (*v1beta1.ProviderOverride)(in.ProviderOverride),
	}
	if r := in.Restart; r != nil {
		out.Restart = &v1beta1.Restart{ID: r.ID}
		if r.Strategy != nil {
			out.Restart.Strategy = &v1beta1.RestartStrategy{Type: string(r.Strategy.Type), Order: r.Strategy.Order}
		}
	}
	if t := in.TopologyConstraint; t != nil {
		out.TopologyConstraint = &v1beta1.TopologyConstraint{ClusterTopologyName: t.TopologyProfile, PackDomain: t.PackDomain}
	}
	if e := in.Experimental; e != nil {
		out.Experimental = &v1beta1.GraphExperimental{KVTransferPolicy: (*v1beta1.KVTransferPolicy)(e.KVTransferPolicy)}
	}
	return out
}

// downGraph converts all but the services.
func downGraph(in *v1beta1.DynamoGraphDeploymentSpec) v1alpha1.DynamoGraphDeploymentSpec {
	out := v1alpha1.DynamoGraphDeploymentSpec{
		Envs:              in.Env,
		BackendFramework:  v1alpha1.BackendFramework(in.BackendFramework),
		Annotations:       in.Annotations,
		Labels:            in.Labels,
		PriorityClassName: in.PriorityClassName,
		ProviderOverride:  (*v1alpha1.ProviderOverride)(in.ProviderOverride),
	}
	if r := in.Restart; r != nil {
		out.Restart = &v1alpha1.Restart{ID: r.ID}
		if r.Strategy != nil {
			out.Restart.Strategy = &v1alpha1.RestartStrategy{Type: v1alpha1.RestartStrategyType(r.Strategy.Type), Order: r.Strategy.Order}
		}
	}
	if t := in.TopologyConstraint; t != nil {
		out.TopologyConstraint = &v1alpha1.TopologyConstraint{TopologyProfile: t.ClusterTopologyName, PackDomain: t.PackDomain}
	}
	if e := in.Experimental; e != nil {
		out.Experimental = &v1alpha1.GraphExperimental{KVTransferPolicy: (*v1alpha1.KVTransferPolicy)(e.KVTransferPolicy)}
	}
	return out
}
