package graph

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

// Contract is what the runtime in a graph's images expects of whoever starts it:
// environment, ports, probes, labels, and how nodes of a group find each other.
type Contract string

const (
	// ContractSeed is that of runtimes before 1.0.
	ContractSeed Contract = "seed"
	// ContractV1 is that of 1.x runtimes.
	ContractV1 Contract = "1.x"
)

// ContractRules are the operator's settings for the choice of a contract.
type ContractRules struct {
	// Forced is the contract of every graph; empty goes by the graph.
	Forced Contract
	// UnknownTags is the contract of a graph whose images do not tell; empty is the
	// seed's.
	UnknownTags Contract
}

// Running is what the children of a graph show of how they were made. It counts
// where nothing is recorded, so that a graph that is taken over goes on as it is.
type Running struct {
	// Contract is empty for a graph that has no children.
	Contract Contract
	// Generation is the id that its workers have, and Plain says that some have none.
	// Misrecorded says that the original left another on record, which none of them has.
	Generation  string
	Plain       bool
	Misrecorded bool
	// NamespaceLabel is the Dynamo namespace that the pods of a component's workload are
	// labelled with.
	NamespaceLabel string
	// Unobserved says that a component was told something that nobody has acted on yet.
	Unobserved bool
	// Paired says that its frontends are, or were to be, of generations.
	Paired bool
	// Names are those of components that the original named after their generation, by
	// service. They keep them: another name would be another workload.
	Names map[string]string
	// WorkerSet is the PodCliqueSet of its workers, where they are of a later generation
	// than the first, which is in the graph's own.
	WorkerSet string
	// Unmarked says that the graph's PodCliqueSet is as the original made it. Adopted
	// is the digest of the workers in one that was taken over.
	Unmarked bool
	Adopted  string
}

// Records are the annotations in which the operator keeps what it chose for a graph.
var Records = []string{
	v1alpha1.AnnotationWorkloadProvider, v1alpha1.AnnotationWorkloadChoice,
	v1alpha1.AnnotationRuntimeContract, v1alpha1.AnnotationRuntimeContractChoice,
	v1alpha1.AnnotationOriginVersion, v1alpha1.AnnotationGeneration, v1alpha1.AnnotationEarlierGeneration,
	v1alpha1.AnnotationAdoptedWorkers, v1alpha1.AnnotationAdoptedGeneration,
}

// ReadRunning reads the children that a graph, or a component, owns.
func ReadRunning(owner metav1.Object, owned []Object) Running {
	var running Running
	_, managed := owner.GetAnnotations()[v1alpha1.AnnotationGeneration]
	_, earlier := owner.GetAnnotations()[v1alpha1.AnnotationEarlierGeneration]
	// A set without marks is ours, too, if the graph moves from the seed's contract.
	_, chosen := owner.GetAnnotations()[v1alpha1.AnnotationRuntimeContractChoice]
	for _, child := range owned {
		if _, record := child.(*appsv1.ControllerRevision); record {
			continue // of what ran
		}
		id := cmp.Or(generationID(child.GetLabels()[v1alpha1.LabelGeneration]), generationID(child.GetAnnotations()[v1alpha1.AnnotationGeneration]))
		running.Generation = cmp.Or(running.Generation, id)
		running.readPairing(child, id)
		told := Contract(child.GetAnnotations()[v1alpha1.AnnotationRuntimeContract])
		if told == ContractV1 || told != ContractSeed && (managed || earlier || id != "" || discovered(child)) {
			running.Contract = ContractV1
		}
		running.Contract = cmp.Or(running.Contract, ContractSeed)
		if _, set := child.(*grovev1alpha1.PodCliqueSet); set {
			_, marked := child.GetAnnotations()[v1alpha1.AnnotationRuntimeContract]
			running.Unmarked = !marked && !chosen && running.Contract == ContractV1
			running.Adopted = child.GetAnnotations()[v1alpha1.AnnotationAdoptedWorkers]
		}
	}
	recorded := cmp.Or(recordedGeneration(owner.GetAnnotations()), running.Generation)
	if id := carriedGeneration(owner, owned, recorded); id != recorded {
		running.Generation, running.Misrecorded, recorded = id, true, id
	}
	running.Unobserved = slices.ContainsFunc(owned, unobserved)
	running.NamespaceLabel = labelOfPods(owned)
	running.Names = generationNames(owned, recorded)
	running.WorkerSet = workerSet(owned, recorded)
	return running
}

// discovered reports whether a workload's pods are found by their labels. Before 1.0 the
// original labelled Services alone; a component without a graph carries no other sign of
// the release that made it.
func discovered(child Object) bool {
	return podLabels(child)[v1alpha1.LabelDiscoveryBackend] != ""
}

// carriedGeneration is the id that the components which the original left carry, where the
// recorded one is none of theirs: it kept two records, and moved from one to the other. Who
// went by the record alone would make all workers anew, and delete those that serve.
func carriedGeneration(owner metav1.Object, owned []Object, recorded string) string {
	var ids []string
	for _, child := range owned {
		_, component := child.(*v1alpha1.DynamoComponentDeployment)
		if _, ours := child.GetAnnotations()[v1alpha1.AnnotationRuntimeContract]; ours && component {
			return recorded
		}
		if id := generationID(child.GetLabels()[v1alpha1.LabelGeneration]); component && id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	earlier := generationID(owner.GetAnnotations()[v1alpha1.AnnotationEarlierGeneration])
	switch {
	case len(ids) == 0 || slices.Contains(ids, recorded):
		return recorded
	case slices.Contains(ids, earlier):
		return earlier
	case len(ids) == 1:
		return ids[0]
	default:
		return recorded
	}
}

// labelOfPods is the Dynamo namespace that a workload labels its pods with.
func labelOfPods(owned []Object) string {
	for _, child := range owned {
		if labels := podLabels(child); labels != nil {
			return labels[v1alpha1.LabelDynamoNamespace]
		}
	}
	return ""
}

// podLabels are those of a workload's pods; nil for what is none.
func podLabels(child Object) map[string]string {
	switch w := child.(type) {
	case *appsv1.Deployment:
		return w.Spec.Template.Labels
	case *lwsv1.LeaderWorkerSet:
		return w.Spec.LeaderWorkerTemplate.WorkerTemplate.Labels
	default:
		return nil
	}
}

// namespaceLabel is a label that pods have and that we would give to none: the original
// takes the deprecated dynamoNamespace for it. What it made keeps it for good, as Services
// find both old pods and new ones by it.
func (r Running) namespaceLabel(g *Graph) string {
	for _, global := range []bool{false, true} {
		if r.NamespaceLabel == DynamoNamespace(g.Namespace, g.Name, global) {
			return ""
		}
	}
	return r.NamespaceLabel
}

// unobserved reports whether a component was told something that whoever looks after it
// has not acted on. One that never said how far it was says nothing.
func unobserved(child Object) bool {
	dcd, ok := child.(*v1alpha1.DynamoComponentDeployment)
	return ok && dcd.Status.ObservedGeneration != 0 && dcd.Status.ObservedGeneration < dcd.Generation
}

// workerSet is the PodCliqueSet that was made for a generation; empty for none.
func workerSet(owned []Object, generation string) string {
	for _, child := range owned {
		if _, set := child.(*grovev1alpha1.PodCliqueSet); set && generation != "" && child.GetLabels()[v1alpha1.LabelGeneration] == generation {
			return child.GetName()
		}
	}
	return ""
}

// RecordedGeneration is the id that stands on a graph; empty for none, or a graph whose
// record is lost. The graph itself is then taken for what some of its children are.
func RecordedGeneration(owner metav1.Object) string {
	return recordedGeneration(owner.GetAnnotations())
}

// recordedGeneration is the id that stands on a graph; empty for none.
func recordedGeneration(annotations map[string]string) string {
	return cmp.Or(generationID(annotations[v1alpha1.AnnotationGeneration]), generationID(annotations[v1alpha1.AnnotationEarlierGeneration]))
}

// generationNames are the components of a generation that are named after it, by
// service.
func generationNames(owned []Object, generation string) map[string]string {
	if generation == "" {
		return nil
	}
	var names map[string]string
	for _, child := range owned {
		_, component := child.(*v1alpha1.DynamoComponentDeployment)
		service := child.GetLabels()[v1alpha1.LabelComponent]
		if !component || service == "" || child.GetLabels()[v1alpha1.LabelGeneration] != generation || !strings.HasSuffix(child.GetName(), "-"+generation) {
			continue
		}
		if names == nil {
			names = map[string]string{}
		}
		names[service] = child.GetName()
	}
	return names
}

// Marks are annotations of a child by which ReadRunning knows how it was made; none
// under the seed's contract, under which there is nothing to know.
func (g *Graph) Marks() map[string]string {
	if g.Contract != ContractV1 {
		return nil
	}
	marks := map[string]string{v1alpha1.AnnotationRuntimeContract: string(g.Contract)}
	if g.Generation != "" {
		marks[v1alpha1.AnnotationGeneration] = g.Generation
	}
	if g.Adopted != "" {
		marks[v1alpha1.AnnotationAdoptedWorkers] = g.Adopted
	}
	return marks
}

// traits are what a contract is chosen by, of a graph or a component.
type traits struct {
	Beta bool
	// Newer says that a field is used that runtimes before 1.0 did not have.
	Newer bool
	// Origin says that it was made under 1.0 or later. It is no part of the digest:
	// we write it ourselves, under the contract that was chosen.
	Origin bool `json:"-"`
	// Images are those of workers and frontends.
	Images []string
}

func graphTraits(dgd *v1alpha1.DynamoGraphDeployment) traits {
	s := &dgd.Spec
	t := traitsOf(dgd)
	t.Newer = len(s.Annotations) > 0 || len(s.Labels) > 0 || s.PriorityClassName != "" || s.TopologyConstraint != nil || s.Experimental != nil ||
		s.ProviderOverride != nil
	for _, service := range s.SortedServices() {
		t.add(service)
	}
	return t
}

func componentTraits(dcd *v1alpha1.DynamoComponentDeployment) traits {
	t := traitsOf(dcd)
	t.add(&dcd.Spec.SharedSpec)
	return t
}

func traitsOf(object metav1.Object) traits {
	origin, ok := parseVersion(object.GetAnnotations()[v1alpha1.AnnotationOriginVersion])
	return traits{Beta: conversion.WrittenAs(object) == conversion.Beta, Origin: ok && origin >= 1}
}

func (t *traits) add(s *v1alpha1.SharedSpec) {
	t.Newer = t.Newer || s.FrontendSidecar != nil || s.GPUMemoryService != nil || s.Failover != nil || s.Checkpoint != nil ||
		s.TopologyConstraint != nil || s.MinAvailable != nil || s.RuntimeVersionOverride != "" || s.ProviderOverride != nil
	if role := RoleOf(string(s.ComponentType)); role.RunsEngine() || role == RoleFrontend {
		image := ""
		if s.ExtraPodSpec != nil && s.ExtraPodSpec.MainContainer != nil {
			image = s.ExtraPodSpec.MainContainer.Image
		}
		t.Images = append(t.Images, image)
	}
}

// choose is the contract of what has not been given one.
//
//	forced by the configuration                         that
//	v1beta1, made under 1.x, or uses a newer field      1.x
//	all workers and frontends are tagged 1.0 or later   1.x
//	one is tagged earlier than 1.0                      the seed's
//	tags do not tell                                    as the configuration says
func (t traits) choose(r ContractRules) Contract {
	if r.Forced != "" {
		return r.Forced
	}
	return cmp.Or(t.told(), r.UnknownTags, ContractSeed)
}

// told is the contract that an object asks for itself; empty if its tags do not tell.
func (t traits) told() Contract {
	if t.Beta || t.Origin || t.Newer {
		return ContractV1
	}
	later := 0
	for _, image := range t.Images {
		switch major, known := parseVersion(tag(image)); {
		case known && major < 1:
			return ContractSeed
		case known:
			later++
		}
	}
	if len(t.Images) > 0 && later == len(t.Images) {
		return ContractV1
	}
	return ""
}

// digest is what the choice is recorded under. How many replicas there are is not
// in it, nor anything else that changes while pods stay.
func (t traits) digest() string {
	text, err := json.Marshal(t)
	if err != nil {
		return "" // booleans and strings can be encoded
	}
	return digest(string(text))
}

// contractOf is the contract of an object: the recorded one, as long as what it was
// chosen by stands, or new images of one under 1.x do not tell; that of its children, if nothing is recorded; or a new choice.
func contractOf(object metav1.Object, t traits, r ContractRules, running Running) Contract {
	recorded := Contract(object.GetAnnotations()[v1alpha1.AnnotationRuntimeContract])
	known := recorded == ContractSeed || recorded == ContractV1
	under, chosen := object.GetAnnotations()[v1alpha1.AnnotationRuntimeContractChoice]
	switch {
	case known && (!chosen || under == t.digest()):
		return recorded
	case recorded == ContractV1 && r.Forced == "" && t.told() == "":
		return recorded // an image by its digest says nothing against the workers that run
	case !known && running.Contract != "":
		return running.Contract
	default:
		return t.choose(r)
	}
}

// record is what has to stand in an object's annotations for the choice to stand.
// A contract that the user gave is left alone.
func record(object metav1.Object, t traits, contract Contract, generation, origin string) map[string]string {
	annotations := object.GetAnnotations()
	note := map[string]string{}
	_, given := annotations[v1alpha1.AnnotationRuntimeContract]
	_, chosen := annotations[v1alpha1.AnnotationRuntimeContractChoice]
	if !given || chosen {
		note[v1alpha1.AnnotationRuntimeContract] = string(contract)
		note[v1alpha1.AnnotationRuntimeContractChoice] = t.digest()
	}
	if generation != "" {
		note[v1alpha1.AnnotationGeneration] = generation
	}
	if origin != "" && annotations[v1alpha1.AnnotationOriginVersion] == "" {
		note[v1alpha1.AnnotationOriginVersion] = origin
	}
	return note
}

// CompatibleVersion is the release of the original whose contract 1.x graphs are
// made under. It is stamped on those that are made new: what is taken over without
// such a stamp was made under an earlier one, and another would replace its pods.
const CompatibleVersion = "1.4.1"

// RecordGraph is what has to stand in the annotations of a graph so that it keeps
// its contract and its generation.
func RecordGraph(dgd *v1alpha1.DynamoGraphDeployment, g *Graph, running Running) map[string]string {
	note := record(dgd, graphTraits(dgd), g.Contract, g.Generation, stamp(dgd, g.Contract, running))
	if g.Adopted != "" {
		note[v1alpha1.AnnotationAdoptedWorkers] = g.Adopted
	}
	if g.TakenOver != "" {
		note[v1alpha1.AnnotationAdoptedGeneration] = g.TakenOver
	}
	return note
}

// takenOver is the generation of a graph, or of a component without one, that the
// original carried out and left, while it is of that; empty for all others. Whether it
// carried it out is asked before we first write to it: a change that nobody has acted on
// yet, or not to the end, must not be taken for one that is.
func takenOver(object metav1.Object, carriedOut bool, contract Contract, running Running) string {
	now := strconv.FormatInt(object.GetGeneration(), 10)
	recorded, known := object.GetAnnotations()[v1alpha1.AnnotationAdoptedGeneration]
	_, chosen := object.GetAnnotations()[v1alpha1.AnnotationRuntimeContractChoice]
	switch {
	case contract != ContractV1 || known && recorded != now:
		return ""
	case known:
		return now
	case chosen || running.Contract == "" || running.Unobserved || object.GetGeneration() == 0 || !carriedOut:
		return ""
	}
	return now
}

// RecordTakeover is what has to stand in the annotations of a graph of which nothing else
// is decided yet, so that it is not forgotten that the original carried it out: our first
// status hides it.
func RecordTakeover(dgd *v1alpha1.DynamoGraphDeployment, running Running) map[string]string {
	return recordTakeover(dgd, carriedOut(dgd), running)
}

// RecordComponentTakeover does the same for a component that stands alone; those of a
// graph are told theirs.
func RecordComponentTakeover(dcd *v1alpha1.DynamoComponentDeployment, running Running) map[string]string {
	if ParentGraph(dcd) != "" {
		return nil
	}
	return recordTakeover(dcd, componentCarriedOut(dcd), running)
}

func recordTakeover(object metav1.Object, carriedOut bool, running Running) map[string]string {
	_, known := object.GetAnnotations()[v1alpha1.AnnotationAdoptedGeneration]
	generation := takenOver(object, carriedOut, running.Contract, running)
	if known || generation == "" {
		return nil
	}
	return map[string]string{v1alpha1.AnnotationAdoptedGeneration: generation}
}

// carriedOut says whether a graph's status is the original's, and that nothing is left to
// be done. Only ours say of which generation a condition is. A graph whose pods are not all
// ready is pending: everything was written, and what serves is to go on.
func carriedOut(dgd *v1alpha1.DynamoGraphDeployment) bool {
	st := dgd.Status
	rolling := st.RollingUpdate != nil && st.RollingUpdate.Phase != "" && st.RollingUpdate.Phase != "Completed"
	restarting := st.Restart != nil && (st.Restart.Phase == v1alpha1.RestartPhasePending || st.Restart.Phase == v1alpha1.RestartPhaseRestarting)
	return st.ObservedGeneration == dgd.Generation && (st.State == v1alpha1.GraphStateSuccessful || st.State == v1alpha1.GraphStatePending) &&
		!rolling && !restarting && !ours(st.Conditions)
}

// componentCarriedOut says the same of a component that stands alone: whoever observed it
// has told its workload.
func componentCarriedOut(dcd *v1alpha1.DynamoComponentDeployment) bool {
	return dcd.Status.ObservedGeneration == dcd.Generation && !ours(dcd.Status.Conditions)
}

func ours(conditions []metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.ObservedGeneration != 0 })
}

// RecordComponent does the same for a component that stands alone; those of a
// graph are told theirs.
func RecordComponent(dcd *v1alpha1.DynamoComponentDeployment, g *Graph, running Running) map[string]string {
	if !g.Standalone {
		return nil
	}
	note := record(dcd, componentTraits(dcd), g.Contract, g.Generation, stamp(dcd, g.Contract, running))
	if g.TakenOver != "" {
		note[v1alpha1.AnnotationAdoptedGeneration] = g.TakenOver
	}
	return note
}

// stamp is the origin of an object that is made new under 1.x.
func stamp(object metav1.Object, contract Contract, running Running) string {
	if contract != ContractV1 || !isNew(object, running) {
		return ""
	}
	return CompatibleVersion
}

// isNew reports whether nothing was ever made for an object.
func isNew(object metav1.Object, running Running) bool {
	_, chosen := object.GetAnnotations()[v1alpha1.AnnotationRuntimeContractChoice]
	_, managed := object.GetAnnotations()[v1alpha1.AnnotationGeneration]
	return !chosen && !managed && running.Contract == ""
}

// executor is how nodes of a vLLM group are joined. What was made before 1.0 has
// Ray, and keeps it.
func executor(object metav1.Object, wishes map[string]string, contract Contract, running Running) Executor {
	switch wish := Executor(wishes[v1alpha1.AnnotationVLLMExecutor]); {
	case wish == ExecutorMP || wish == ExecutorRay:
		return wish
	case contract != ContractV1:
		return ExecutorRay
	}
	origin, ok := parseVersion(object.GetAnnotations()[v1alpha1.AnnotationOriginVersion])
	if ok && origin >= 1 || !ok && isNew(object, running) {
		return ExecutorMP
	}
	return ExecutorRay
}

// version is x.y.z with anything after it.
var version = regexp.MustCompile(`^v?(\d{1,9})\.\d+\.\d+(\D.*)?$`)

// parseVersion is the first number of a version; false for what is none.
func parseVersion(text string) (major int, ok bool) {
	found := version.FindStringSubmatch(text)
	if found == nil {
		return 0, false
	}
	major, err := strconv.Atoi(found[1])
	return major, err == nil
}

// tag is that of an image; empty for one that has none.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	at := strings.LastIndex(image, ":")
	if at < 0 || strings.Contains(image[at:], "/") {
		return ""
	}
	return image[at+1:]
}

// generationPattern is a digest as anybody writes one; it becomes part of label
// values and of the runtime's names.
var generationPattern = regexp.MustCompile(`^[0-9a-z]{1,16}$`)

func generationID(text string) string {
	if generationPattern.MatchString(text) {
		return text
	}
	return ""
}

// generate gives a graph of the 1.x contract the id of its generation of workers:
// the recorded one, that of its children, or a digest of the workers as they are
// now. Which of them it was is of no importance later; that it stays is. Workers that
// were taken over without one join it when they change, which replaces their pods anyway.
func (g *Graph) generate(annotations map[string]string, running Running) {
	if g.Contract != ContractV1 {
		return
	}
	workers := g.workersDigest()
	g.Generation = cmp.Or(recordedGeneration(annotations), running.Generation, workers)
	if running.Misrecorded {
		g.Generation = running.Generation
	}
	adopted := cmp.Or(annotations[v1alpha1.AnnotationAdoptedWorkers], running.Adopted)
	if workers != "" && (running.Unmarked || adopted == workers) {
		g.Adopted = workers
	}
	picker := slices.ContainsFunc(g.Components, func(c Component) bool { return c.Role == RoleEPP })
	for i := range g.Components {
		c := &g.Components[i]
		c.Adopted = g.Adopted != ""
		if !c.Role.RunsEngine() {
			continue
		}
		if g.Adopted == "" {
			c.join(g.Generation)
		}
		if name := running.Names[c.Name]; name != "" {
			c.rename(name)
		}
		c.CliqueSet = cmp.Or(running.WorkerSet, c.CliqueSet)
		if picker {
			c.Class = v1alpha1.ComponentClassWorker
		}
	}
}

// join makes a worker part of a generation.
func (c *Component) join(generation string) {
	c.Generation, c.RuntimeNamespace = generation, c.NamespaceOf(generation)
}

// NamespaceOf is the Dynamo namespace in which a worker registers in a generation.
func (c Component) NamespaceOf(generation string) string {
	if generation == "" {
		return c.DynamoNamespace
	}
	return c.DynamoNamespace + "-" + generation
}

// rename gives a component the name that it has in a generation. Frontends of all
// generations are behind one Service.
func (c *Component) rename(object string) {
	c.ObjectName = object
	if c.Role != RoleFrontend {
		c.ServiceName = serviceName(object)
	}
}

// Membership is which generation a worker is of, and the name that it has there. Under
// Grove it has another PodCliqueSet instead.
type Membership struct {
	Generation, ObjectName, CliqueSet string
}

// InGenerations is the graph with its workers in the generations that they are of, by
// service. Workers that are not named stay where they are.
func (g *Graph) InGenerations(of map[string]Membership) *Graph {
	moved := *g
	moved.Components = slices.Clone(g.Components)
	for i := range moved.Components {
		c := &moved.Components[i]
		if m, named := of[c.Name]; named {
			c.join(m.Generation)
			c.rename(m.ObjectName)
			c.CliqueSet = cmp.Or(m.CliqueSet, c.CliqueSet)
		}
	}
	return &moved
}

// WorkersDigest is a new id for a generation: that of what comes in generations as it is
// now, whatever its number. It is empty for a graph without workers.
func (g *Graph) WorkersDigest() string { return g.workersDigest() }

// workersDigest is empty for a graph without workers.
func (g *Graph) workersDigest() string {
	var workers []v1beta1.Component
	for _, c := range g.Components {
		if g.InGeneration(c) {
			c.MinAvailable = nil
			spec := c.V1Beta1()
			spec.Replicas = nil
			workers = append(workers, spec)
		}
	}
	if len(workers) == 0 {
		return ""
	}
	slices.SortFunc(workers, func(a, b v1beta1.Component) int { return cmp.Compare(a.Name, b.Name) })
	text, err := json.Marshal(workers)
	if err != nil {
		text = nil // what came as JSON can be encoded
	}
	return digest(g.Namespace + "/" + g.Name + string(text))
}
