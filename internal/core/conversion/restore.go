package conversion

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// same is equality in the eyes of the API: an empty list is no list, and 1000m
// is 1.
func same(a, b any) bool { return sameValue(reflect.ValueOf(a), reflect.ValueOf(b)) }

// sameValue takes short cuts, since most of what is compared went there and back
// and shares its memory. What is not seen at a glance is left to the API's own
// equality.
func sameValue(x, y reflect.Value) bool {
	if !x.IsValid() || !y.IsValid() {
		return x.IsValid() == y.IsValid()
	}
	if x.Type() != y.Type() {
		return false
	}
	switch x.Kind() {
	case reflect.Pointer:
		switch {
		case x.Pointer() == y.Pointer():
			return true
		case x.IsNil() || y.IsNil():
			return false
		default:
			return sameValue(x.Elem(), y.Elem())
		}
	case reflect.Slice, reflect.Map:
		if x.Len() != y.Len() {
			return false
		}
		if x.Len() == 0 || x.Pointer() == y.Pointer() {
			return true
		}
	case reflect.String:
		return x.String() == y.String()
	case reflect.Bool:
		return x.Bool() == y.Bool()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return x.Int() == y.Int()
	case reflect.Struct:
		if plain(x.Type()) {
			for i := range x.NumField() {
				if !sameValue(x.Field(i), y.Field(i)) {
					return false
				}
			}
			return true
		}
	default:
	}
	return equality.Semantic.DeepEqual(x.Interface(), y.Interface())
}

// plain reports whether a struct is no more than its fields. Quantities and times
// are more, and keep theirs to themselves.
func plain(t reflect.Type) bool {
	if known, ok := plains.Load(t); ok {
		return known.(bool)
	}
	is := t != reflect.TypeFor[metav1.Time]() && t != reflect.TypeFor[metav1.MicroTime]()
	for i := range t.NumField() {
		is = is && t.Field(i).IsExported()
	}
	plains.Store(t, is)
	return is
}

var plains sync.Map // by reflect.Type

// What says nothing, to compare with: behind pointers, because large values would be
// copied for it.
var (
	noPod       corev1.PodSpec
	noContainer corev1.Container
	noMeta      metav1.ObjectMeta
)

// GuardPayload lets a payload count only while the object shows what it would
// show without it.
const GuardPayload guard.Guard = "payload"

// A part is a group of fields that a payload keeps together. Each has two
// halves: what is to be kept of an object, and how that is put back.
type part[T any] struct {
	// save copies the part of the source into the payload if home, the source as
	// it would come back without a payload, differs in it.
	save func(payload, source, home *T) bool
	// load puts the part of the payload into an object that came back without it.
	load func(object, payload *T, live *v1beta1.Component)
}

// serviceParts are what v1beta1 cannot say of a service.
var serviceParts = []part[v1alpha1.SharedSpec]{
	field(func(s *v1alpha1.SharedSpec) *map[string]string { return &s.Annotations }),
	field(func(s *v1alpha1.SharedSpec) *map[string]string { return &s.Labels }),
	field(func(s *v1alpha1.SharedSpec) *string { return &s.ServiceName }),
	field(func(s *v1alpha1.SharedSpec) **string { return &s.DynamoNamespace }),
	field(func(s *v1alpha1.SharedSpec) **v1alpha1.Autoscaling { return &s.Autoscaling }),
	field(func(s *v1alpha1.SharedSpec) **v1alpha1.IngressSpec { return &s.Ingress }),
	field(func(s *v1alpha1.SharedSpec) **v1alpha1.SharedMemory { return &s.SharedMemory }),
	field(func(s *v1alpha1.SharedSpec) **v1alpha1.ScalingAdapter { return &s.ScalingAdapter }),
	field(func(s *v1alpha1.SharedSpec) **v1alpha1.GPUMemoryService { return &s.GPUMemoryService }),
	field(func(s *v1alpha1.SharedSpec) **v1alpha1.Failover { return &s.Failover }),
	{saveRole, loadRole},
	{saveSidecar, loadSidecar},
	// Where it was written: in the service's own fields or in mainContainer.
	placed(
		func(s *v1alpha1.SharedSpec) *[]corev1.EnvVar { return &s.Envs },
		func(c *corev1.Container) *[]corev1.EnvVar { return &c.Env }),
	placed(
		func(s *v1alpha1.SharedSpec) **string { return &s.EnvFromSecret },
		func(c *corev1.Container) *[]corev1.EnvFromSource { return &c.EnvFrom }),
	placed(
		func(s *v1alpha1.SharedSpec) **v1alpha1.Resources { return &s.Resources },
		func(c *corev1.Container) *corev1.ResourceRequirements { return &c.Resources }),
	placed(
		func(s *v1alpha1.SharedSpec) **corev1.Probe { return &s.LivenessProbe },
		func(c *corev1.Container) **corev1.Probe { return &c.LivenessProbe }),
	placed(
		func(s *v1alpha1.SharedSpec) **corev1.Probe { return &s.ReadinessProbe },
		func(c *corev1.Container) **corev1.Probe { return &c.ReadinessProbe }),
	placed(
		func(s *v1alpha1.SharedSpec) *[]v1alpha1.VolumeMount { return &s.VolumeMounts },
		func(c *corev1.Container) *[]corev1.VolumeMount { return &c.VolumeMounts }),
	// Last: what is left empty by the parts before it goes, unless it was there.
	{saveShape, loadShape},
}

// field is a part of one field that is empty in a service that says nothing of
// it.
func field[F any](at func(*v1alpha1.SharedSpec) *F) part[v1alpha1.SharedSpec] {
	var none F
	return part[v1alpha1.SharedSpec]{
		save: func(payload, source, home *v1alpha1.SharedSpec) bool {
			if same(*at(source), *at(home)) {
				return false
			}
			*at(payload) = *at(source)
			return true
		},
		load: func(object, payload *v1alpha1.SharedSpec, _ *v1beta1.Component) {
			if !same(*at(payload), none) {
				*at(object) = *at(payload)
			}
		},
	}
}

// placed is a part of two places in which one thing can be written.
func placed[F, G any](own func(*v1alpha1.SharedSpec) *F, main func(*corev1.Container) *G) part[v1alpha1.SharedSpec] {
	var noF F
	var noG G
	inMain := func(s *v1alpha1.SharedSpec) G {
		if s.ExtraPodSpec == nil || s.ExtraPodSpec.MainContainer == nil {
			return noG
		}
		return *main(s.ExtraPodSpec.MainContainer)
	}
	set := func(object, from *v1alpha1.SharedSpec) {
		*own(object) = *own(from)
		if value := inMain(from); !same(value, noG) || !same(inMain(object), noG) {
			*main(mainOf(object)) = value
		}
	}
	return part[v1alpha1.SharedSpec]{
		save: func(payload, source, home *v1alpha1.SharedSpec) bool {
			if same(*own(source), *own(home)) && same(inMain(source), inMain(home)) {
				return false
			}
			set(payload, source)
			return true
		},
		load: func(object, payload *v1alpha1.SharedSpec, _ *v1beta1.Component) {
			if !same(*own(payload), noF) || !same(inMain(payload), noG) {
				set(object, payload)
			}
		},
	}
}

// mainOf is the main container of a service, which it is given if it has none.
// What the service shared with others it has to itself afterwards.
func mainOf(s *v1alpha1.SharedSpec) *corev1.Container {
	extra, main := v1alpha1.ExtraPodSpec{}, corev1.Container{}
	if s.ExtraPodSpec != nil {
		extra = *s.ExtraPodSpec
		if extra.MainContainer != nil {
			main = *extra.MainContainer
		}
	}
	extra.MainContainer = &main
	s.ExtraPodSpec = &extra
	return &main
}

func saveRole(payload, source, home *v1alpha1.SharedSpec) bool {
	if source.ComponentType == home.ComponentType && source.SubComponentType == home.SubComponentType {
		return false
	}
	payload.ComponentType, payload.SubComponentType = source.ComponentType, source.SubComponentType
	return true
}

func loadRole(object, payload *v1alpha1.SharedSpec, _ *v1beta1.Component) {
	switch {
	case payload.ComponentType != "":
		object.ComponentType, object.SubComponentType = payload.ComponentType, payload.SubComponentType
	case payload.SubComponentType != "":
		// The original keeps a sub-type alone.
		object.SubComponentType = payload.SubComponentType
	}
}

func saveSidecar(payload, source, _ *v1alpha1.SharedSpec) bool {
	payload.FrontendSidecar = source.FrontendSidecar
	return source.FrontendSidecar != nil
}

// loadSidecar turns the container back that a frontendSidecar had become.
func loadSidecar(object, payload *v1alpha1.SharedSpec, live *v1beta1.Component) {
	if payload.FrontendSidecar == nil || live.FrontendSidecar != FrontendSidecar || object.ExtraPodSpec == nil || object.ExtraPodSpec.PodSpec == nil {
		return
	}
	extra := *object.ExtraPodSpec
	spec := *extra.PodSpec
	last := len(spec.Containers) - 1
	if last < 0 || spec.Containers[last].Name != FrontendSidecar {
		return
	}
	spec.Containers = spec.Containers[:last:last]
	extra.PodSpec = &spec
	if same(&spec, &noPod) {
		extra.PodSpec = nil
	}
	object.ExtraPodSpec, object.FrontendSidecar = &extra, payload.FrontendSidecar
}

// saveShape keeps which structs are there though they say nothing, and the name
// that the main container was given.
func saveShape(payload, source, home *v1alpha1.SharedSpec) bool {
	differs := (source.ExtraPodMetadata == nil) != (home.ExtraPodMetadata == nil) ||
		(source.ExtraPodSpec == nil) != (home.ExtraPodSpec == nil) ||
		(mainName(source) == nil) != (mainName(home) == nil) || mainName(source) != nil && *mainName(source) != *mainName(home)
	if source.ExtraPodMetadata != nil && home.ExtraPodMetadata == nil {
		payload.ExtraPodMetadata = &v1alpha1.ExtraPodMetadata{}
	}
	if name := mainName(source); name != nil {
		mainOf(payload).Name = *name
	} else if source.ExtraPodSpec != nil && payload.ExtraPodSpec == nil {
		payload.ExtraPodSpec = &v1alpha1.ExtraPodSpec{}
	}
	return differs
}

func mainName(s *v1alpha1.SharedSpec) *string {
	if s.ExtraPodSpec == nil || s.ExtraPodSpec.MainContainer == nil {
		return nil
	}
	return &s.ExtraPodSpec.MainContainer.Name
}

func loadShape(object, payload *v1alpha1.SharedSpec, _ *v1beta1.Component) {
	if payload.ExtraPodMetadata != nil && object.ExtraPodMetadata == nil {
		object.ExtraPodMetadata = &v1alpha1.ExtraPodMetadata{}
	}
	if name := mainName(payload); name != nil {
		mainOf(object).Name = *name
		return
	}
	if object.ExtraPodSpec == nil {
		if payload.ExtraPodSpec != nil {
			object.ExtraPodSpec = &v1alpha1.ExtraPodSpec{}
		}
		return
	}
	extra := *object.ExtraPodSpec
	if extra.MainContainer != nil && empty(extra.MainContainer) {
		extra.MainContainer = nil
	}
	object.ExtraPodSpec = &extra
	if payload.ExtraPodSpec == nil && extra.MainContainer == nil && (extra.PodSpec == nil || same(extra.PodSpec, &noPod)) {
		object.ExtraPodSpec = nil
	}
}

// componentParts are what v1alpha1 cannot say of a component.
var componentParts = []part[v1beta1.Component]{
	{saveTemplate, loadTemplate},
	{saveReference, loadReference},
	{saveExperimental, loadExperimental},
}

// saveTemplate keeps metadata beyond labels and annotations, the order of the
// containers, and the mounts of the main one.
func saveTemplate(payload, source, home *v1beta1.Component) bool {
	if source.PodTemplate == nil {
		return false // up makes no template of a service that came from none
	}
	var back v1beta1.PodTemplate
	if home.PodTemplate != nil {
		back = *home.PodTemplate
	}
	t := v1beta1.PodTemplate{}
	differs := home.PodTemplate == nil
	rest := source.PodTemplate.ObjectMeta
	rest.Labels, rest.Annotations = nil, nil
	if !same(&rest, &noMeta) {
		t.ObjectMeta, differs = rest, true
	}
	names, backNames := containerNames(source.PodTemplate), containerNames(&back)
	mounts, backMounts := mainMounts(source.PodTemplate), mainMounts(&back)
	ordered, mounted := slices.Equal(names, backNames), same(mounts, backMounts)
	if !ordered || !mounted || differs {
		differs = true
		for _, name := range names {
			c := corev1.Container{Name: name}
			// A cache's mount that is not listed counts as made up.
			if name == v1beta1.MainContainer && (!mounted || hasCache(source.CompilationCache, mounts)) {
				c.VolumeMounts = mounts
			}
			t.Spec.Containers = append(t.Spec.Containers, c)
		}
	}
	if differs {
		payload.PodTemplate = &t
	}
	return differs
}

func containerNames(t *v1beta1.PodTemplate) []string {
	names := make([]string, len(t.Spec.Containers))
	for i, c := range t.Spec.Containers {
		names[i] = c.Name
	}
	return names
}

func mainMounts(t *v1beta1.PodTemplate) []corev1.VolumeMount {
	if i := mainIndex(t.Spec.Containers); i >= 0 {
		return t.Spec.Containers[i].VolumeMounts
	}
	return nil
}

func loadTemplate(object, payload *v1beta1.Component, _ *v1beta1.Component) {
	kept := payload.PodTemplate
	if kept == nil {
		return
	}
	t := v1beta1.PodTemplate{}
	if object.PodTemplate != nil {
		t = *object.PodTemplate
	}
	labels, annotations := t.Labels, t.Annotations
	t.ObjectMeta = kept.ObjectMeta
	t.Labels, t.Annotations = labels, annotations
	t.Spec.Containers = arrange(t.Spec.Containers, kept.Spec.Containers, object.CompilationCache)
	object.PodTemplate = &t
}

// arrange gives containers the order that a payload remembers, and the main one
// its mounts.
func arrange(live, kept []corev1.Container, cache *v1beta1.CompilationCache) []corev1.Container {
	names := make([]string, len(kept))
	for i := range kept {
		names[i] = kept[i].Name
	}
	all := slices.Clone(live)
	known := mainIndex(kept)
	if at := mainIndex(all); known >= 0 && at < 0 {
		all = append([]corev1.Container{{Name: v1beta1.MainContainer}}, all...)
	} else if known < 0 && at >= 0 {
		// A main container that says nothing was made up by the conversion.
		blank := all[at]
		blank.Name, blank.VolumeMounts = "", remount(blank.VolumeMounts, nil, cache)
		if empty(&blank) {
			all = slices.Delete(all, at, at+1)
		}
	}
	reorder(all, names, func(c corev1.Container) string { return c.Name })
	if at := mainIndex(all); known >= 0 && at >= 0 {
		all[at].VolumeMounts = remount(all[at].VolumeMounts, kept[known].VolumeMounts, cache)
	}
	return all
}

// reorder puts the items that are named into that order, in the places that they
// have together. The others stay.
func reorder[T any](items []T, names []string, name func(T) string) {
	rank := make(map[string]int, len(names))
	for i, n := range names {
		if _, twice := rank[n]; !twice {
			rank[n] = i
		}
	}
	var places []int
	var named []T
	for i, item := range items {
		if _, ok := rank[name(item)]; ok {
			places, named = append(places, i), append(named, item)
		}
	}
	slices.SortStableFunc(named, func(a, b T) int { return cmp.Compare(rank[name(a)], rank[name(b)]) })
	for i, place := range places {
		items[place] = named[i]
	}
}

// remount gives mounts the details and the order that a payload remembers. The
// mount of the compilation cache was made up if the payload does not know it.
func remount(live, kept []corev1.VolumeMount, cache *v1beta1.CompilationCache) []corev1.VolumeMount {
	if !hasCache(cache, kept) {
		if i := slices.IndexFunc(live, func(m corev1.VolumeMount) bool { return isCache(cache, m) }); i >= 0 {
			live = slices.Delete(slices.Clone(live), i, i+1)
		}
	}
	rest := slices.Clone(live)
	known := make([]bool, len(kept))
	for i, m := range kept {
		// One that says more than v1beta1's own name and path was edited since.
		plain := corev1.VolumeMount{Name: m.Name, MountPath: m.MountPath}
		if at := slices.IndexFunc(rest, func(o corev1.VolumeMount) bool { return same(o, plain) || same(o, m) }); at >= 0 {
			known[i] = true
			rest = slices.Delete(rest, at, at+1)
		}
	}
	if len(rest) == 0 && !slices.Contains(known, false) {
		return kept
	}
	// Some were added or removed since, or the payload knows only the special
	// ones: the object's order counts.
	all := slices.Clone(live)
	for i, m := range kept {
		if known[i] {
			at := slices.IndexFunc(all, func(o corev1.VolumeMount) bool {
				return same(o, corev1.VolumeMount{Name: m.Name, MountPath: m.MountPath})
			})
			if at >= 0 {
				all[at] = m
			}
		}
	}
	return all
}

func hasCache(cache *v1beta1.CompilationCache, mounts []corev1.VolumeMount) bool {
	return slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return isCache(cache, m) })
}

func saveReference(payload, source, home *v1beta1.Component) bool {
	if source.FrontendSidecar == home.FrontendSidecar {
		return false
	}
	payload.FrontendSidecar = source.FrontendSidecar
	return true
}

func loadReference(object, payload *v1beta1.Component, _ *v1beta1.Component) {
	if object.FrontendSidecar == "" {
		object.FrontendSidecar = payload.FrontendSidecar
	}
}

// saveExperimental keeps that there are such settings though none says anything, and
// those about Grove.
func saveExperimental(payload, source, home *v1beta1.Component) bool {
	e := source.Experimental
	if e == nil || home.Experimental != nil && e.Grove == nil {
		return false
	}
	payload.Experimental = &v1beta1.ComponentExperimental{Grove: e.Grove}
	return true
}

func loadExperimental(object, payload *v1beta1.Component, _ *v1beta1.Component) {
	if payload.Experimental == nil {
		return
	}
	e := v1beta1.ComponentExperimental{}
	if object.Experimental != nil {
		e = *object.Experimental
	}
	e.Grove = payload.Experimental.Grove
	object.Experimental = &e
}

// remember is what a service would lose on the way to v1beta1 and back; false if
// nothing.
func remember(source, home *v1alpha1.SharedSpec) (*v1alpha1.SharedSpec, bool) {
	payload, special := &v1alpha1.SharedSpec{}, false
	for _, p := range serviceParts {
		special = p.save(payload, source, home) || special
	}
	return payload, special
}

// rememberComponent is what a component would lose on the way to v1alpha1 and
// back; false if nothing.
func rememberComponent(source, home *v1beta1.Component) (v1beta1.Component, bool) {
	payload, special := v1beta1.Component{Name: source.Name}, false
	for _, p := range componentParts {
		special = p.save(&payload, source, home) || special
	}
	return payload, special
}

// restoreService puts a payload back into a service that came from a component.
// No part of it counts after which the service would show as another component
// than the live one. It reports whether all parts counted.
func restoreService(live *v1beta1.Component, payload *v1alpha1.SharedSpec) (*v1alpha1.SharedSpec, bool) {
	if upType(&v1alpha1.SharedSpec{ComponentType: v1alpha1.ComponentType(live.Type)}) != live.Type {
		// The original lets words of the user's own into v1beta1. Ours does not
		// show them there, so it is compared without.
		typeless := *live
		typeless.Type = ""
		service, whole := restoreService(&typeless, payload)
		service.ComponentType = v1alpha1.ComponentType(live.Type)
		return service, whole
	}
	plain := down(live)
	shows := func(s *v1alpha1.SharedSpec) bool {
		c := up(live.Name, s)
		// v1alpha1 has no word for a component without a template.
		return (live.PodTemplate != nil || c.PodTemplate == nil) && same(down(&c), plain)
	}
	return restore(plain, payload, live, serviceParts, shows)
}

// restoreComponent puts a payload back into a component that came from a
// service, by the same rule: plain is what it shows as, with the payload and
// without.
func restoreComponent(live *v1beta1.Component, plain *v1alpha1.SharedSpec, payload *v1beta1.Component) (*v1beta1.Component, bool) {
	shows := func(c *v1beta1.Component) bool { return same(down(c), plain) }
	return restore(live, payload, live, componentParts, shows)
}

func restore[T any](plain, payload *T, live *v1beta1.Component, parts []part[T], shows func(*T) bool) (*T, bool) {
	all := *plain
	for _, p := range parts {
		p.load(&all, payload, live)
	}
	if GuardPayload.Off() || shows(&all) {
		return &all, true
	}
	// The object was changed since the payload was written, or the payload was
	// written by somebody else: part by part.
	some := *plain
	for _, p := range parts {
		next := some
		p.load(&next, payload, live)
		if shows(&next) {
			some = next
		}
	}
	return &some, false
}
