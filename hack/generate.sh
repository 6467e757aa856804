#!/usr/bin/env bash
# Generates everything that is derived from Go: deep copies, the API reference
# and the CustomResourceDefinitions from the types, the latter for kustomize, the
# chart and the binaries; the operator's role from the markers beside the code
# that needs it, and from it the chart's; the chart's policies from Kustomize's; the dashboards from their tables; and the
# chart's README from its values.
#
#   hack/generate.sh           write the files
#   hack/generate.sh --check   write nothing, fail if a committed file is stale
#
# Generators are pinned in hack/tool.sh and built on first use.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CGO_ENABLED=0

# generate ROOT writes all generated files below ROOT.
generate() {
  local root=$1 version controller_gen crd_ref_docs helm_docs raw
  controller_gen=$(hack/tool.sh controller-gen)
  crd_ref_docs=$(hack/tool.sh crd-ref-docs)
  helm_docs=$(hack/tool.sh helm-docs)
  raw=$(mktemp -d)
  mkdir -p "$root/docs/api"
  for version in v1alpha1 v1beta1; do
    mkdir -p "$root/api/$version"
    "$controller_gen" paths="./api/$version" object output:object:dir="$root/api/$version"
    "$crd_ref_docs" --source-path="./api/$version" --config=hack/api-reference.yaml --renderer=markdown \
      --output-path="$root/docs/api/$version.md" --log-level=ERROR
  done
  # Floats are dangerous where numbers are compared; those of v1beta1 are its
  # published shape.
  "$controller_gen" paths=./api/... crd:allowDangerousTypes=true output:crd:dir="$raw"
  "$controller_gen" paths=./internal/... rbac:roleName=dynamo-operator-manager output:rbac:dir="$root/config/rbac"
  go run ./hack/crds --from "$raw" --kustomize "$root/config/crd" --chart "$root/charts/crds/templates"
  rm -r "$raw"
  # The chart's roles follow those that were just written.
  cp -r config/rbac "$raw"
  [[ "$root" == "$PWD" ]] || cp "$root"/config/rbac/*.yaml "$raw"
  go run ./hack/chartrules "$raw" "$root/charts/platform/files/rules"
  rm -r "$raw"
  mkdir -p "$root/charts/platform/files/policies"
  cp config/tenancy/{adapter,ingress,workermetadata}.yaml "$root/charts/platform/files/policies"
  go run ./hack/dashboards "$root/charts/platform/files/dashboards"
  "$helm_docs" --chart-search-root=charts/platform --sort-values-order=file --dry-run \
    --log-level=warning >"$root/charts/platform/README.md"
}

case ${1:-} in
  "")
    generate "$PWD"
    ;;
  --check)
    fresh=$(mktemp -d)
    trap 'rm -r "$fresh"' EXIT
    generate "$fresh" >/dev/null
    stale=0
    while IFS= read -r file; do
      diff -u "$file" "$fresh/$file" || stale=1
    done < <(cd "$fresh" && find . -type f | sort)
    # A definition that is no longer generated must go, too.
    while IFS= read -r file; do
      [[ -e "$fresh/$file" ]] || { echo "$file is not generated any more"; stale=1; }
    done < <(find ./config/crd ./charts/crds/templates -name 'nvidia.com_*.yaml' | sort)
    if [[ $stale -ne 0 ]]; then
      echo "generated files are stale: run hack/generate.sh" >&2
      exit 1
    fi
    ;;
  *)
    echo "usage: hack/generate.sh [--check]" >&2
    exit 2
    ;;
esac
