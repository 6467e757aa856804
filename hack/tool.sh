#!/usr/bin/env bash
# Prints the path of a tool that is pinned here, and builds it on first use:
#
#   hack/tool.sh NAME
#
# Tools live in $TOOLS_DIR by name and version, so that another version never
# finds the wrong one.
set -euo pipefail
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-gcflags=all=-dwarf=false
# As in build.sh: compilers live for seconds.
export GOGC=${GOGC:-off} GOMEMLIMIT=${GOMEMLIMIT:-2GiB}

tools=${TOOLS_DIR:-$HOME/.cache/dynamo-operator/tools}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# From outside the module, so that its go.mod has no say in the tool's build.
install() { # NAME VERSION PACKAGE
  local dir="$tools/$1-$2"
  [[ -x "$dir/$1" ]] || (cd / && GOBIN="$dir" go install "$3@$2") >&2
  echo "$dir/$1"
}

# Some programs cannot be installed by version, because their modules replace
# others; those are built from a small module that requires them.
module() { # NAME MODULE PACKAGE
  local version dir
  version=$(awk -v m="$2" '$1 == m {print $2} $1 == "require" && $2 == m {print $3}' "$here/tool/$1/go.mod")
  dir="$tools/$1-$version"
  [[ -x "$dir/$1" ]] || (cd "$here/tool/$1" && go build -o "$dir/$1" "$3") >&2
  echo "$dir/$1"
}

case ${1:-} in
  actionlint)     install actionlint v1.7.7 github.com/rhysd/actionlint/cmd/actionlint ;;
  controller-gen) install controller-gen v0.23.0 sigs.k8s.io/controller-tools/cmd/controller-gen ;;
  crane)          install crane v0.20.6 github.com/google/go-containerregistry/cmd/crane ;;
  crd-ref-docs)   install crd-ref-docs v0.3.0 github.com/elastic/crd-ref-docs ;;
  golangci-lint)  install golangci-lint v2.13.0 github.com/golangci/golangci-lint/v2/cmd/golangci-lint ;;
  gotestsum)      install gotestsum v1.13.0 gotest.tools/gotestsum ;;
  helm)           install helm v3.22.0 helm.sh/helm/v3/cmd/helm ;;
  helm-docs)      install helm-docs v1.14.2 github.com/norwoodj/helm-docs/cmd/helm-docs ;;
  helm-unittest)  module helm-unittest github.com/helm-unittest/helm-unittest github.com/helm-unittest/helm-unittest/cmd/helm-unittest ;;
  *) echo "usage: hack/tool.sh actionlint|controller-gen|crane|crd-ref-docs|golangci-lint|gotestsum|helm|helm-docs|helm-unittest" >&2; exit 2 ;;
esac
