// Package revision keeps the specs of a graph that were rolled out, as
// ControllerRevisions. It builds and reads these objects, and does nothing with them.
//
// What became of a rollout is written on its revision and not only on the graph, whose
// annotations and status may be wiped: an aborted spec must not be tried again for it.
package revision

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Result is what became of the rollout of a revision.
type Result string

const (
	// Undecided is under way, or was before anybody kept a result.
	Undecided  Result = ""
	Completed  Result = "completed"
	Aborted    Result = "aborted"
	Superseded Result = "superseded"
)

// Record is what a rollout was like.
type Record struct {
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	EndedAt   *metav1.Time `json:"endedAt,omitempty"`
	// Reason and Message are why it was aborted.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// StartSeconds is how long pods took to be ready, the median, by role; none of those that
	// were not seen to.
	StartSeconds map[string]int32 `json:"startSeconds,omitempty"`
	// Lowest is the lowest number of effective replicas, by role.
	Lowest   map[string]int32 `json:"lowest,omitempty"`
	PeakGPUs int32            `json:"peakGPUs,omitempty"`
}

// stored is what a revision holds: a graph as far as it is its author's word, in the
// version that graphs are stored in.
type stored struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        storedMetadata                     `json:"metadata,omitzero"`
	Spec            v1alpha1.DynamoGraphDeploymentSpec `json:"spec"`
}

type storedMetadata struct {
	Annotations map[string]string `json:"annotations,omitempty"`
}

// words are the annotations that are a part of what was written: what v1alpha1 cannot
// say of a graph that was written as v1beta1.
var words = []string{v1alpha1.AnnotationGraphPayload, v1alpha1.AnnotationWrittenAs}

// storedOf leaves out what is no part of a version: the replicas that a scaling
// adapter decides, and the request to restart, which was for then.
func storedOf(dgd *v1alpha1.DynamoGraphDeployment) stored {
	s := stored{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindDynamoGraphDeployment},
		Spec:     *dgd.Spec.DeepCopy(),
	}
	s.Spec.Restart = nil
	for _, service := range s.Spec.Services {
		if adapted(service) {
			service.Replicas = nil
		}
	}
	for _, key := range words {
		if value, set := dgd.Annotations[key]; set {
			if s.Metadata.Annotations == nil {
				s.Metadata.Annotations = map[string]string{}
			}
			s.Metadata.Annotations[key] = value
		}
	}
	return s
}

func adapted(s *v1alpha1.SharedSpec) bool {
	return s != nil && s.ScalingAdapter != nil && s.ScalingAdapter.Enabled
}

// hashDigits is how much of a digest is in a name: enough for the few revisions that
// a graph has.
const hashDigits = 10

// Build makes the revision of a graph as it is now, for a generation of its workers.
// Its name comes from its data, so that the same spec has the same revision.
func Build(dgd *v1alpha1.DynamoGraphDeployment, generation string, number int64) (*appsv1.ControllerRevision, error) {
	data, err := json.Marshal(storedOf(dgd))
	if err != nil {
		return nil, fmt.Errorf("encode the spec of graph %s: %w", dgd.Name, err)
	}
	digest := sha256.Sum256(data)
	r := &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{
			Name:      graph.RevisionName(dgd.Name, hex.EncodeToString(digest[:])[:hashDigits]),
			Namespace: dgd.Namespace,
			Labels: map[string]string{
				v1alpha1.LabelGraphName: graph.LabelValue(dgd.Name),
				v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(dgd, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
	if generation != "" {
		r.Labels[v1alpha1.LabelGeneration] = generation
	}
	if cause := dgd.Annotations[v1alpha1.AnnotationChangeCause]; cause != "" {
		r.Annotations = map[string]string{v1alpha1.AnnotationChangeCause: cause}
	}
	return r, nil
}

// OfRestart makes a revision that remembers what became of a restart: of the same spec as
// another, for a generation of its own.
func OfRestart(dgd *v1alpha1.DynamoGraphDeployment, generation string, number int64) (*appsv1.ControllerRevision, error) {
	r, err := Build(dgd, generation, number)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(append(slices.Clone(r.Data.Raw), generation...))
	r.Name = graph.RevisionName(dgd.Name, hex.EncodeToString(digest[:])[:hashDigits])
	return r, nil
}

// WithGeneration is the revision with another generation of workers that run it.
func WithGeneration(r *appsv1.ControllerRevision, generation string) *appsv1.ControllerRevision {
	r = r.DeepCopy()
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	r.Labels[v1alpha1.LabelGeneration] = generation
	return r
}

// Generation is the id that the workers of a revision had.
func Generation(r *appsv1.ControllerRevision) string { return r.Labels[v1alpha1.LabelGeneration] }

// ChangeCause is why its author made it.
func ChangeCause(r *appsv1.ControllerRevision) string {
	return r.Annotations[v1alpha1.AnnotationChangeCause]
}

// ResultOf is what became of a revision.
func ResultOf(r *appsv1.ControllerRevision) Result {
	return Result(r.Annotations[v1alpha1.AnnotationRolloutResult])
}

// RecordOf is what its rollout was like; empty if that cannot be read, since it is
// only told.
func RecordOf(r *appsv1.ControllerRevision) Record {
	var record Record
	if err := json.Unmarshal([]byte(r.Annotations[v1alpha1.AnnotationRolloutRecord]), &record); err != nil {
		return Record{}
	}
	return record
}

// LongestRecord bounds the record of a revision as text: the operator's cache holds no
// longer one. longestMessage leaves room in it for the rest, escaped as it may be.
const (
	LongestRecord  = 4 << 10
	longestMessage = 512
)

// WithResult is the revision with what became of it. Of a record that is too long, why
// it ended stays.
func WithResult(r *appsv1.ControllerRevision, result Result, record Record) (*appsv1.ControllerRevision, error) {
	if len(record.Message) > longestMessage {
		record.Message = strings.ToValidUTF8(record.Message[:longestMessage], "")
	}
	text, err := json.Marshal(record)
	if err == nil && len(text) > LongestRecord {
		record.StartSeconds, record.Lowest = nil, nil
		text, err = json.Marshal(record)
	}
	if err != nil {
		return nil, fmt.Errorf("encode the record of revision %s: %w", r.Name, err)
	}
	r = r.DeepCopy()
	set(r, v1alpha1.AnnotationRolloutResult, string(result))
	set(r, v1alpha1.AnnotationRolloutRecord, string(text))
	return r, nil
}

func set(r *appsv1.ControllerRevision, key, value string) {
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	if value == "" {
		delete(r.Annotations, key)
		return
	}
	r.Annotations[key] = value
}

// Renewed is an earlier revision whose spec is rolled out again: its number is the
// newest, and nothing has become of it yet.
func Renewed(earlier, now *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	r := earlier.DeepCopy()
	r.Revision = now.Revision
	r.Labels = now.Labels
	delete(r.Annotations, v1alpha1.AnnotationRolloutResult)
	delete(r.Annotations, v1alpha1.AnnotationRolloutRecord)
	set(r, v1alpha1.AnnotationChangeCause, ChangeCause(now))
	return r
}

// Sorted are the revisions of a graph, the oldest first.
func Sorted(all []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	return slices.SortedFunc(slices.Values(all), func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
}

// Next is the number of a new revision.
func Next(all []*appsv1.ControllerRevision) int64 {
	newest := int64(0)
	for _, r := range all {
		newest = max(newest, r.Revision)
	}
	return newest + 1
}

// OfGeneration is the newest revision of a generation; nil if there is none.
func OfGeneration(all []*appsv1.ControllerRevision, generation string) *appsv1.ControllerRevision {
	return newest(all, func(r *appsv1.ControllerRevision) bool { return Generation(r) == generation })
}

// Numbered is the revision of a number; nil if there is none.
func Numbered(all []*appsv1.ControllerRevision, number int64) *appsv1.ControllerRevision {
	return newest(all, func(r *appsv1.ControllerRevision) bool { return r.Revision == number })
}

// Stable is the newest revision whose rollout was completed; nil if none was.
func Stable(all []*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	return newest(all, func(r *appsv1.ControllerRevision) bool { return ResultOf(r) == Completed })
}

// Before is the newest completed revision other than that of a generation: what an
// undo goes back to; nil if there is none.
func Before(all []*appsv1.ControllerRevision, generation string) *appsv1.ControllerRevision {
	return newest(all, func(r *appsv1.ControllerRevision) bool {
		return ResultOf(r) == Completed && Generation(r) != generation
	})
}

func newest(all []*appsv1.ControllerRevision, is func(*appsv1.ControllerRevision) bool) *appsv1.ControllerRevision {
	for _, r := range slices.Backward(Sorted(all)) {
		if is(r) {
			return r
		}
	}
	return nil
}

// AbortedGenerations are those that must not be tried again, sorted. The same workers
// have a revision for each spec that they were a part of; the newest tells of them.
func AbortedGenerations(all []*appsv1.ControllerRevision) []string {
	var ids []string
	for _, r := range all {
		if ResultOf(r) == Aborted && r == OfGeneration(all, Generation(r)) {
			ids = append(ids, Generation(r))
		}
	}
	slices.Sort(ids)
	return ids
}

// Surplus are the revisions to delete, so that no more than limit are left: first those
// whose workers have completed another spec since, then the oldest. Those of generations
// that are alive stay, and so does the stable one: it is the way back.
func Surplus(all []*appsv1.ControllerRevision, limit int, live []string) []*appsv1.ControllerRevision {
	stable := Stable(all)
	left := len(all)
	var past, others, surplus []*appsv1.ControllerRevision
	for _, r := range Sorted(all) {
		if replaced(all, r) {
			past = append(past, r)
		} else if r != stable && !slices.Contains(live, Generation(r)) {
			others = append(others, r)
		}
	}
	for _, r := range slices.Concat(past, others) {
		if left <= limit {
			break
		}
		surplus = append(surplus, r)
		left--
	}
	return surplus
}

// replaced reports whether there is a newer spec that workers of a revision completed.
func replaced(all []*appsv1.ControllerRevision, r *appsv1.ControllerRevision) bool {
	return slices.ContainsFunc(all, func(o *appsv1.ControllerRevision) bool {
		return o.Revision > r.Revision && Generation(o) == Generation(r) && ResultOf(o) == Completed
	})
}

// Restore is a graph with the spec of a revision. What is not a part of a revision
// stays as it is: the replicas that a scaling adapter decides, and the last restart.
func Restore(dgd *v1alpha1.DynamoGraphDeployment, r *appsv1.ControllerRevision) (*v1alpha1.DynamoGraphDeployment, error) {
	var s stored
	if err := json.Unmarshal(r.Data.Raw, &s); err != nil {
		return nil, fmt.Errorf("read the spec of revision %s: %w", r.Name, err)
	}
	if want := v1alpha1.SchemeGroupVersion.String(); s.APIVersion != want || s.Kind != v1alpha1.KindDynamoGraphDeployment {
		return nil, fmt.Errorf("read the spec of revision %s: it is of %s %s, not of a graph in %s", r.Name, s.APIVersion, s.Kind, want)
	}
	restored := dgd.DeepCopy()
	restored.Spec = s.Spec
	restored.Spec.Restart = dgd.Spec.Restart.DeepCopy()
	for name, service := range restored.Spec.Services {
		if live := dgd.Spec.Services[name]; adapted(service) && live != nil && live.Replicas != nil {
			n := *live.Replicas
			service.Replicas = &n
		}
	}
	for _, key := range words {
		delete(restored.Annotations, key)
		if value, set := s.Metadata.Annotations[key]; set {
			if restored.Annotations == nil {
				restored.Annotations = map[string]string{}
			}
			restored.Annotations[key] = value
		}
	}
	return restored, nil
}
