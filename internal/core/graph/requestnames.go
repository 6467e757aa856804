package graph

import (
	"strings"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// ProfilingJob names the Job that profiles for a request.
func ProfilingJob(request string) string { return shorten("profile-" + request) }

// ProfilingInput names the ConfigMap that a request's profiler reads its
// configuration from.
func ProfilingInput(request string) string {
	return suffixed("dgdr-input-"+request, "", maxName)
}

// ProfilingOutput names the ConfigMap in which a request's profiler leaves what
// it found.
func ProfilingOutput(request string) string {
	return suffixed("dgdr-output-"+request, "", maxName)
}

// RequestedGraph names the graph of a request. Unlike requests, graphs know no
// dots.
func RequestedGraph(request string) string {
	if strings.Contains(request, ".") {
		return suffixed(strings.ReplaceAll(request, ".", "-"), "-"+digest(request), maxLabel)
	}
	return shorten(request)
}

// RequestedBetaGraph names the graph of a request that was written as v1beta1.
func RequestedBetaGraph(request string) string {
	stem := request
	if strings.Contains(request, ".") {
		stem = strings.ReplaceAll(request, ".", "-") + "-" + digest(request)
	}
	return suffixed(stem, "-dgd", maxLabel)
}

// RequestedConfigMap names a ConfigMap that goes with the graph of a request:
// profilers give it one name for all requests.
func RequestedConfigMap(request, name string) string {
	if strings.HasPrefix(name, request+"-") {
		return name
	}
	return suffixed(request+"-"+name, "", maxName)
}

// RequestLabels lead from an object back to the request that it was made for.
func RequestLabels(request Object) map[string]string {
	return map[string]string{
		v1alpha1.LabelRequestName:      shorten(request.GetName()),
		v1alpha1.LabelRequestNamespace: request.GetNamespace(),
		v1alpha1.LabelManagedBy:        v1alpha1.ManagedBy,
	}
}

// OfRequest reports whether an object was made for a request.
func OfRequest(object, request Object) bool {
	labels := object.GetLabels()
	return labels[v1alpha1.LabelRequestName] == shorten(request.GetName()) &&
		labels[v1alpha1.LabelRequestNamespace] == request.GetNamespace()
}
