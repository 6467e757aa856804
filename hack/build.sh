#!/usr/bin/env bash
# Builds programs of a module and says how far it is, at least every ten seconds:
# a cold build compiles Kubernetes, and nothing on a screen for minutes looks like
# nothing happening.
#
#   hack/build.sh OUT LDFLAGS PACKAGE...
#
# OUT is a program, or with a slash at its end a folder of several. It is run in
# the module's folder. TICK sets the seconds between two lines.
set -euo pipefail

out=$1 ldflags=$2
shift 2
tick=${TICK:-10}

# Compilers live for seconds: without garbage collection they need about half of
# their time (k8s.io/api/core/v1: 12 s of CPU with it, 7 s without). The limit is for
# the few packages, and the linker, that would take more than that.
export GOGC=${GOGC:-off} GOMEMLIMIT=${GOMEMLIMIT:-2GiB}

log=$(mktemp)
child=
trap '[[ -z $child ]] || kill "$child" 2>/dev/null || true; rm -f "$log"' EXIT

# What go prints are packages as they are built, modules as they are fetched, and
# errors, which are the lines that are neither.
show() { grep -vE '^[^ :#]+$|^go: downloading ' "$log" >&2 || true; }

# follow WORDS PATTERN OF: a line every tick while the child runs. The tick goes on from
# one child to the next: nothing is to be silent for longer because another began.
next=$((SECONDS + tick))
follow() {
  local status=0
  while kill -0 "$child" 2>/dev/null; do
    sleep 0.2
    if ((SECONDS >= next)); then
      echo "  $1 $(grep -cE "$2" "$log" || true)$3, after $((SECONDS / 60))m$(printf %02d $((SECONDS % 60)))s"
      next=$((SECONDS + tick))
    fi
  done
  wait "$child" || status=$?
  child=
  if ((status)); then
    show
    exit "$status"
  fi
}

go list -deps "$@" >"$log.deps" 2>"$log" &
child=$!
follow "modules fetched:" '^go: downloading ' ""
total=$(sort -u "$log.deps" | wc -l)
rm -f "$log.deps"
: >"$log"

go build -v -ldflags "$ldflags" -o "$out" "$@" >"$log" 2>&1 &
child=$!
follow "packages built:" '^[^ :#]+$' " of at most $total"
show
if ((SECONDS >= tick)); then
  echo "  built in $((SECONDS / 60))m$(printf %02d $((SECONDS % 60)))s"
fi
