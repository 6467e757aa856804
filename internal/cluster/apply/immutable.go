package apply

import (
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// kindTraits is what has to be known of a kind whose objects cannot take every
// change.
type kindTraits struct {
	// fixed are fields that keep the value they were made with.
	fixed [][]string
	// retainsData objects hold what cannot be made again: a change that they cannot
	// take is refused. Others are deleted and made again.
	retainsData bool
	// ownsPods means that pods hang on an object. They must be gone before it is
	// made again: they have the same names and hold the same GPUs.
	ownsPods bool
}

var traits = map[schema.GroupKind]kindTraits{
	{Group: "apps", Kind: "Deployment"}: {ownsPods: true, fixed: [][]string{{"spec", "selector"}}},
	// Not every version of the controller can resize a running group.
	{Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"}: {ownsPods: true, fixed: [][]string{{"spec", "leaderWorkerTemplate", "size"}}},
	{Group: "grove.io", Kind: "PodCliqueSet"}:                    {ownsPods: true, fixed: [][]string{{"spec", "template", "cliqueStartupType"}}},
	{Group: "batch", Kind: "Job"}: {ownsPods: true, fixed: [][]string{
		{"spec", "template"}, {"spec", "selector"}, {"spec", "completions"}, {"spec", "completionMode"},
	}},
	{Group: v1alpha1.GroupName, Kind: v1alpha1.KindDynamoComponentDeployment}: {ownsPods: true, fixed: [][]string{{"spec", "backendFramework"}}},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                 {fixed: [][]string{{"roleRef"}}},
	// Pods that run have claims of their own; only those to come read it.
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}: {fixed: [][]string{{"spec"}}},
	{Kind: "Service"}: {fixed: [][]string{{"spec", "clusterIP"}}},
	{Kind: "PersistentVolumeClaim"}: {retainsData: true, fixed: [][]string{
		{"spec", "accessModes"}, {"spec", "storageClassName"}, capacity,
	}},
}

// immutableDiff names the first field of a live object that differs from what is
// wanted and cannot be changed; empty when every difference can be written.
func (n kindTraits) immutableDiff(payload *unstructured.Unstructured, live map[string]any) string {
	for _, path := range n.fixed {
		want, wanted, err := unstructured.NestedFieldNoCopy(payload.Object, path...)
		if err != nil || !wanted {
			continue
		}
		have, _, err := unstructured.NestedFieldNoCopy(live, path...)
		if err != nil || !covers(want, have) {
			return strings.Join(path, ".")
		}
	}
	return ""
}

// refusedForGood reports whether the server refused a change because a field
// cannot be changed. Kinds word that differently, and webhooks answer with
// another code.
func refusedForGood(err error, id identity) bool {
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || denied(err, id.kind.GroupKind()) {
		return false
	}
	text := strings.ToLower(strings.ReplaceAll(err.Error(), strconv.Quote(id.key.Name), ""))
	return slices.ContainsFunc([]string{
		"immutable", "may not change once set", "may not be changed", "cannot be changed", "cannot change", "not allowed to change", "updates to",
	}, func(words string) bool { return strings.Contains(text, words) })
}

// denied reports whether a policy of the cluster refused a change, rather than what knows
// the kind: the object could take it, is left running until the policy or the wish changes,
// and is not to be made again past the policy. Kinds of the API server have no webhooks of
// their own, so any that speaks is a policy's.
func denied(err error, kind schema.GroupKind) bool {
	if err == nil {
		return false
	}
	return strings.Contains(err.Error(), " denied request: ") || // a ValidatingAdmissionPolicy
		clientscheme.Scheme.IsGroupRegistered(kind.Group) && strings.Contains(err.Error(), " denied the request")
}

// serverMessage is what the server says is wrong with an object: which field and
// why, without the object itself.
func serverMessage(err error) string {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return shortened(err.Error())
	}
	var all []string
	for _, cause := range status.Status().Details.Causes {
		all = append(all, strings.TrimPrefix(cause.Field+": ", ": ")+lastPart(cause))
	}
	slices.Sort(all)
	return shortened(strings.Join(slices.Compact(all), "; "))
}

// lastPart drops the value that a cause quotes before it says what is wrong.
func lastPart(cause metav1.StatusCause) string {
	if at := strings.LastIndex(cause.Message, ": "); at >= 0 {
		return cause.Message[at+2:]
	}
	return cause.Message
}

func shortened(text string) string {
	const most = 400
	if len(text) <= most {
		return text
	}
	return text[:most] + " ..."
}
