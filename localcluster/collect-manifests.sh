#!/bin/sh
# collect-manifests.sh FOLDER copies the manifests of the add-ons out of the Go modules that publish them, at the
# versions of the go.mod files here. A running cluster reads the copies, so it needs neither Go nor the network.
set -eu

out=$1
here=$(cd "$(dirname "$0")" && pwd)

# module FOLDER-OF-GO.MOD NAME prints where a module's source lies.
module() {
	(cd "$here/$1" && go mod download "$2" >&2 && go list -m -f '{{.Dir}}' "$2")
}

# collect ADD-ON FILE... copies files; those of the module cache are read-only.
collect() {
	addon=$1
	shift
	mkdir -p "$new/$addon"
	install -m 644 "$@" "$new/$addon"
}

new=$out.new
rm -rf "$new"
lws=$(module lws sigs.k8s.io/lws)
grove=$(module . github.com/ai-dynamo/grove/operator/api)
inference=$(module . sigs.k8s.io/gateway-api-inference-extension)
istio=$(module . istio.io/api)

collect lws "$lws"/config/crd/bases/*.yaml "$lws/config/rbac/role.yaml" "$lws/config/webhook/manifests.yaml"
collect volcano "$lws/test/integration/crd/volcano-podgroup.yaml"
collect grove "$grove"/core/v1alpha1/crds/*.yaml
collect inference "$inference"/config/crd/bases/*.yaml
collect istio "$istio/kubernetes/customresourcedefinitions.gen.yaml"

rm -rf "$out"
mv "$new" "$out"
