package requestplan

import (
	"cmp"
	"encoding/json"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

// A question is what a profiler of the contract of 1.x is told: the spec of a
// request of v1beta1, complete. It is recorded as such, so that a later look at
// the cluster, or an annotation that is edited, changes nothing.
type question struct {
	v1beta1.DynamoGraphDeploymentRequestSpec
}

// question is what a request asks under the contract of 1.x; false if it is one of
// the seed's. A request that was written as v1beta1 always is, one of v1alpha1 if
// its profiler is of a release that knows nothing else.
func (p Policy) question(r *v1alpha1.DynamoGraphDeploymentRequest) (question, bool) {
	if conversion.WrittenAs(r) != conversion.Beta && (p.Direct(r.Spec.ProfilingConfig.ProfilerImage) || !ofOne(r.Spec)) {
		return question{}, false
	}
	q := askedIn(r)
	q.Image = cmp.Or(q.Image, p.DefaultImage, p.Image)
	if p.Direct(q.Image) {
		q.Image = p.Image
	}
	return q, true
}

// ofOne reports whether the profiler is of a release from 1.0 on, by its tag or by
// what the request says of it.
func ofOne(spec v1alpha1.DynamoGraphDeploymentRequestSpec) bool {
	release, err := utilversion.ParseSemantic(cmp.Or(spec.RuntimeVersionOverride, version.Tag(spec.ProfilingConfig.ProfilerImage)))
	return err == nil && release.Major() >= 1
}

// askedIn is a request in the form of v1beta1, with its defaults. Those of the
// schema are not in an object that was written before there was one, nor in what
// v1alpha1 says.
func askedIn(r *v1alpha1.DynamoGraphDeploymentRequest) question {
	beta, _ := conversion.RequestToBeta(r)
	q := question{beta.Spec}
	if h := hardwareIn(r); *h != (v1beta1.Hardware{}) {
		q.Hardware = over(q.Hardware, h)
	}
	q.Backend = cmp.Or(q.Backend, "auto")
	q.SearchStrategy = cmp.Or(q.SearchStrategy, v1beta1.SearchStrategyRapid)
	q.AutoApply = orElse(q.AutoApply, true)
	if q.Workload != nil {
		w := *q.Workload
		w.ISL, w.OSL = orElse(w.ISL, 4000), orElse(w.OSL, 1000)
		q.Workload = &w
	}
	if q.ModelCache != nil {
		c := *q.ModelCache
		c.PVCMountPath = cmp.Or(c.PVCMountPath, CacheAsked(r).Path, cachePath)
		q.ModelCache = &c
	}
	return q
}

func orElse[T any](given *T, value T) *T {
	if given != nil {
		return given
	}
	return &value
}

// config is the text that a profiler gets. Unlike the original we do not write
// what was found of the hardware into the user's spec, and put the graph's
// overrides over the graph ourselves. where is the field that a user describes the
// hardware in.
func (q question) config(nodes []Node, where string) (string, error) {
	hardware := complete(q.Hardware, nodes)
	if hardware.GPUSKU == "" {
		if found, ok := Hardware(nodes); ok {
			return "", fault.New(fault.Waiting, v1alpha1.ReasonHardwareNotFound,
				"nodes have GPUs of product %s, for which there is no gpuSku; describe the hardware in %s", found.Product, where)
		}
		return "", fault.New(fault.Waiting, v1alpha1.ReasonHardwareNotFound,
			"no node has GPUs and the labels that GPU feature discovery writes; describe the hardware in %s, or wait for nodes", where)
	}
	q.Hardware = hardware
	if o := q.Overrides; o != nil {
		q.Overrides = nil
		if o.ProfilingJob != nil {
			job := o.ProfilingJob.DeepCopy()
			if job.Template.Spec.Containers == nil {
				job.Template.Spec.Containers = []corev1.Container{} // a list, which readers may count on
			}
			q.Overrides = &v1beta1.Overrides{ProfilingJob: job}
		}
	}
	text, err := json.Marshal(q.DynamoGraphDeploymentRequestSpec)
	return string(text), err
}

// questionIn reads a question from the configuration of a profiler; false if it is
// one of the seed's contract, which has no model of its own.
func questionIn(config string) (question, bool) {
	var q question
	err := json.Unmarshal([]byte(config), &q.DynamoGraphDeploymentRequestSpec)
	return q, err == nil && q.Model != ""
}

// Question is what the profiler was told under the contract of 1.x; false if it
// goes by the seed's.
func (r Record) Question() (v1beta1.DynamoGraphDeploymentRequestSpec, bool) {
	q, ok := questionIn(r.Config)
	return q.DynamoGraphDeploymentRequestSpec, ok
}

// Image is the profiler that a request was accepted with.
func (r Record) Image() string {
	if q, ok := questionIn(r.Config); ok {
		return q.Image
	}
	return r.Spec.ProfilingConfig.ProfilerImage
}

// Looks reports whether the nodes are to be looked at for a request.
func Looks(r *v1alpha1.DynamoGraphDeploymentRequest) bool {
	if conversion.WrittenAs(r) == conversion.Beta || ofOne(r.Spec) {
		given := askedIn(r).Hardware
		return !reflect.DeepEqual(over(given, &anything), over(given, nil))
	}
	return Discovers(r) || !NamesGPU(r)
}

// CacheAsked is the claim with the model that a request names, if any.
func CacheAsked(r *v1alpha1.DynamoGraphDeploymentRequest) ModelCache {
	if config := r.Spec.ProfilingConfig.Config; config != nil {
		return CacheOf(config.Raw)
	}
	return ModelCache{}
}

// writtenAsBeta reports whether a request was accepted as one of v1beta1, or will
// be. What was accepted stays so whatever its annotations say later.
func writtenAsBeta(r *v1alpha1.DynamoGraphDeploymentRequest) bool {
	if a := r.Status.Accepted; a != nil && a.Spec != nil {
		return a.Version == conversion.Beta
	}
	return conversion.WrittenAs(r) == conversion.Beta
}

// still reports whether a request asks what was accepted. In v1beta1 the graph may
// be asked for after it was looked at, and the runtime's version be told.
func (r Record) still(now *v1alpha1.DynamoGraphDeploymentRequest) bool {
	if r.Version != conversion.Beta {
		return Equal(r.Spec, now.Spec)
	}
	was, is := r.Spec, now.Spec
	if !was.AutoApply {
		is.AutoApply = false
	}
	was.RuntimeVersionOverride, is.RuntimeVersionOverride = "", ""
	return Equal(was, is) && r.sameRest(now)
}

// sameRest compares what v1alpha1 has no fields for. Hardware that is not given
// was found.
func (r Record) sameRest(now *v1alpha1.DynamoGraphDeploymentRequest) bool {
	was, ok := questionIn(r.Config)
	if !ok {
		return true
	}
	is := askedIn(now)
	rest := func(q question) any {
		var rest struct {
			strategy    string
			concurrency *float64
			rate, whole *float64
		}
		rest.strategy = q.SearchStrategy
		if w := q.Workload; w != nil {
			rest.concurrency, rest.rate = w.Concurrency, w.RequestRate
		}
		if q.SLA != nil {
			rest.whole = q.SLA.E2ELatency
		}
		return rest
	}
	return reflect.DeepEqual(rest(was), rest(is)) && reflect.DeepEqual(was.Hardware, over(is.Hardware, was.Hardware))
}
