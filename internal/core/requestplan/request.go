// Package requestplan decides the next step of a DynamoGraphDeploymentRequest:
// from the request and what was seen around it to the next state, what to say
// about it, and which objects should exist. It starts nothing and reads nothing;
// the time comes in as a value.
//
//	"" -> Pending -> Profiling -+-> Ready                      autoApply off
//	         ^                  +-> Deploying <-> Ready -> DeploymentDeleted
//	         |  an edit                     |
//	         +--------- Failed <------------+
//
// What a request asks is written into its status when its work begins, because
// nobody but the operator writes there. An edit of the spec after that is told and
// changes nothing; undoing it is forgiven. An edit of a request that failed begins
// anew. ConfigMaps, which users can write, are given to the profiler and read for
// its result; they decide nothing that the status does not prove.
package requestplan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

// Policy is what the operator's configuration says about requests.
type Policy struct {
	// Image is the profiler of ours. Another is run as the original one is.
	Image string
	// DefaultImage is the profiler of a request of v1beta1 that names none; empty
	// means Image.
	DefaultImage string
	// Deadline is how long profiling may take unless a request says otherwise.
	Deadline time.Duration
	// Scope is which namespaces the operator manages.
	Scope validation.Scope
	// Accounts are the ServiceAccounts that the operator makes for pods in the
	// namespaces of graphs.
	Accounts []string
}

// Sight is what was seen around a request.
type Sight struct {
	// Record is what the status holds since the work began; nil before.
	Record *Record
	// Drifted is true if the ConfigMaps of the profiler are missing, somebody
	// else's, or changed.
	Drifted bool
	// Job profiles. Pods are its pods, read only while it does not run well.
	Job  *batchv1.Job
	Pods []corev1.Pod
	// Output is what the profiler left so far; nil if there is no place for it.
	Output map[string]string
	// Graph has the name that the request's graph has or will have, whosever it
	// is; nil if there is none.
	Graph *v1alpha1.DynamoGraphDeployment
	// Nodes tell about GPUs, read only if the request wants to know.
	Nodes []Node
	// Absent says what the request refers to and does not exist.
	Absent []string
	// Leftover are objects of an attempt before this one, and graphs that a
	// profiler left behind.
	Leftover []graph.Object
	// ProfileData holds the ConfigMap that the generated graphs mount, if it has
	// to follow them into another namespace.
	ProfileData *corev1.ConfigMap
	// Consent is read when something is to be made in another namespace.
	Consent *Consent
}

// Record is what a request asked when its work began.
type Record struct {
	// Attempt is the generation of the request that was accepted.
	Attempt string
	Spec    v1alpha1.DynamoGraphDeploymentRequestSpec
	// Version is the one that the request was written as.
	Version string
	// Config is the profiler's configuration, complete.
	Config string
	// Receipt proves what the profiler left; nil until it has.
	Receipt profileoutput.Receipt
}

// KeyConfig is the key of the ConfigMap that a profiler finds its configuration
// under.
const KeyConfig = "config.yaml"

// Wants is which of its objects a request wants to exist now.
type Wants int

// The work goes through these in order.
const (
	Nothing Wants = iota
	// Inputs are the configuration, a place for the output, and an account.
	Inputs
	// Job is all of that and the Job.
	Job
	// Extras are the ConfigMaps that go with the generated graph.
	Extras
	// Graph is the generated graph.
	Graph
)

// Finding is one condition before it meets the earlier ones.
type Finding struct {
	Type, Reason, Message string
	OK                    bool
}

// Step is what follows from a Sight.
type Step struct {
	State    v1alpha1.RequestState
	Findings []Finding
	// Accepted is true if this is about the request as it is written now.
	Accepted bool
	// Anew forgets what was said about an attempt before.
	Anew bool
	// Record is what the work goes by, Begins that it goes by it from now on.
	Record Record
	Begins bool
	// Receipt is what proves the output from now on.
	Receipt profileoutput.Receipt
	Wants   Wants
	// Discard are objects that are of no use any more.
	Discard []graph.Object
	// Generated is the graph that was found, with what goes with it.
	Generated *Generated
	// Results names the object that holds the results.
	Results string
	// Deployment is the graph that was made, as it is now.
	Deployment *v1alpha1.RequestedDeployment
	// Info counts the replicas of that graph.
	Info *v1alpha1.DeploymentInfo
	// Phase is how far profiling is, JobName the Job that profiles; empty if
	// neither has changed.
	Phase, JobName string
	// Deadline is how long profiling may take.
	Deadline time.Duration
	// After asks to look again later; zero waits for a change.
	After time.Duration
}

// Next decides about a request.
func Next(r *v1alpha1.DynamoGraphDeploymentRequest, s Sight, p Policy, now time.Time) Step {
	switch edited := r.Generation != r.Status.ObservedGeneration; {
	case r.Status.State == v1alpha1.RequestStateFailed && edited:
		return Step{State: v1alpha1.RequestStateInitial, Accepted: true, Anew: true, Discard: s.Leftover, After: soon}
	case r.Status.State == v1alpha1.RequestStateFailed:
		return Step{State: v1alpha1.RequestStateFailed, Accepted: true, Discard: s.Leftover}
	case HasGraph(r):
		return s.accept(r, deploy(r, s, p))
	case s.Record == nil:
		return begin(r, s, p)
	default:
		return s.accept(r, profile(r, s, p, now))
	}
}

// accept says whether the request is still what its work began with.
func (s Sight) accept(r *v1alpha1.DynamoGraphDeploymentRequest, step Step) Step {
	step.Accepted = s.Record == nil || s.Record.still(r)
	finding := Finding{v1alpha1.ConditionValidation, v1alpha1.ReasonValidationPassed, "", true}
	if s.Record != nil {
		finding.Message = s.Record.unused()
	}
	if !step.Accepted {
		finding = Finding{
			Type: v1alpha1.ConditionValidation, Reason: v1alpha1.ReasonSpecChangeRejected,
			Message: "the spec was changed after profiling began and the change has no effect; change it back, or make another request",
		}
	}
	step.Findings = slices.Insert(step.Findings, 0, finding)
	if step.State == v1alpha1.RequestStateFailed {
		step.Accepted = true // it failed whatever stands in it; the next edit begins anew
	}
	return step
}

// begin accepts a request, or says why not.
func begin(r *v1alpha1.DynamoGraphDeploymentRequest, s Sight, p Policy) Step {
	if err := validation.Fault(validation.Create(r, p.Scope).Problems); err != nil {
		return Step{
			State: v1alpha1.RequestStateFailed, Accepted: true, Discard: s.Leftover,
			Findings: []Finding{{Type: v1alpha1.ConditionValidation, Reason: v1alpha1.ReasonValidationFailed, Message: err.Error()}},
		}
	}
	pending := Step{State: v1alpha1.RequestStatePending, Accepted: true, Discard: s.Leftover}
	if r.Status.State == v1alpha1.RequestStateProfiling {
		pending.State = v1alpha1.RequestStateProfiling // another operator began it
	}
	config, err := configOf(r, s.Nodes, p)
	if len(s.Absent) > 0 {
		err = fault.New(fault.Waiting, v1alpha1.ReasonInputNotFound, "waiting for %s", list(s.Absent))
	}
	var rights []Right
	if r.Spec.AutoApply {
		rights = graphRights
	}
	if _, denied := p.permit(r, r.Spec, s.Consent, rights); denied != nil && err == nil {
		err = denied
	}
	if f, known := fault.From(err); known {
		pending.Findings = []Finding{{Type: v1alpha1.ConditionValidation, Reason: f.Reason, Message: f.Message}}
		pending.After = absentAgain
		return pending
	}
	pending.Record, pending.Begins = Record{Attempt: Attempt(r), Spec: r.Spec, Version: conversion.WrittenAs(r), Config: config}, true
	pending.Findings = []Finding{{v1alpha1.ConditionValidation, v1alpha1.ReasonValidationPassed, pending.Record.unused(), true}}
	pending.Wants = Inputs
	return pending
}

// absentAgain is how often something that is not watched is looked for.
const absentAgain = 15 * time.Second

// soon comes back to what the status says from now on.
const soon = 100 * time.Millisecond

// Attempt is the mark on the objects that are made for a request as it is now.
func Attempt(r *v1alpha1.DynamoGraphDeploymentRequest) string {
	return strconv.FormatInt(r.Generation, 10)
}

// Recorded reads the Record from the status of a request; nil if there is none.
func Recorded(r *v1alpha1.DynamoGraphDeploymentRequest) (*Record, error) {
	accepted := r.Status.Accepted
	if accepted == nil || accepted.Spec == nil {
		return nil, nil
	}
	record := &Record{
		Attempt: strconv.FormatInt(accepted.Generation, 10), Version: cmp.Or(accepted.Version, conversion.Alpha),
		Config: accepted.ProfilerConfig, Receipt: accepted.OutputDigests,
	}
	if err := json.Unmarshal(accepted.Spec.Raw, &record.Spec); err != nil {
		return nil, fmt.Errorf("read status.accepted.spec: %w", err)
	}
	return record, nil
}

// Accepted is the Record of a request as its status holds it.
func (r Record) Accepted(generation int64) *v1alpha1.AcceptedRequest {
	spec, err := json.Marshal(r.Spec)
	if err != nil {
		panic(err) // it was read from JSON
	}
	accepted := &v1alpha1.AcceptedRequest{Generation: generation, Spec: &runtime.RawExtension{Raw: spec}, ProfilerConfig: r.Config}
	if r.Version != conversion.Alpha {
		accepted.Version = r.Version
	}
	return accepted
}

// Data is what a profiler finds in the ConfigMap that is mounted for it.
func (r Record) Data() map[string]string { return map[string]string{KeyConfig: r.Config} }

// Equal reports whether two specs ask the same. Free-form parts are compared by
// what they say, not by how they are written.
func Equal(a, b v1alpha1.DynamoGraphDeploymentRequestSpec) bool {
	return reflect.DeepEqual(plain(a), plain(b))
}

func plain(spec v1alpha1.DynamoGraphDeploymentRequestSpec) any {
	text, err := json.Marshal(spec)
	if err != nil {
		return spec
	}
	var fields any
	if err := json.Unmarshal(text, &fields); err != nil {
		return spec
	}
	return fields
}

// Direct reports whether an image is the profiler of ours, which is run by a
// contract of its own. Its name without a registry means it too, with any tag: a
// manifest does not know where an installation has its images.
func (p Policy) Direct(image string) bool {
	return image == p.Image || version.Same(image, p.Image)
}

// deadline is how long profiling for a request may take.
func (p Policy) deadline(r *v1alpha1.DynamoGraphDeploymentRequest) time.Duration {
	if given, err := time.ParseDuration(r.Annotations[v1alpha1.AnnotationProfilingDeadline]); err == nil && given > 0 {
		return given
	}
	return p.Deadline
}

// Finding returns what the step says under one condition.
func (s Step) Finding(kind string) (Finding, bool) {
	for _, f := range s.Findings {
		if f.Type == kind {
			return f, true
		}
	}
	return Finding{}, false
}

// say replaces what the step says under one condition.
func (s *Step) say(f Finding) {
	s.Findings = slices.DeleteFunc(slices.Clone(s.Findings), func(old Finding) bool { return old.Type == f.Type })
	s.Findings = append(s.Findings, f)
}

func list(items []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(items))), ", ")
}
