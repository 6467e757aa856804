#!/usr/bin/env bash
# Runs the operator against the cluster of KUBECONFIG, and builds and starts it
# again whenever a source changes. A change that does not build leaves the running
# one alone. Arguments are the operator's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

stamp() { find api cmd config internal -name '*.go' -o -name '*.yaml' | xargs stat -c '%Y %n' | sha256sum; }

operator=
stop() { [[ -z $operator ]] || { kill "$operator" 2>/dev/null && wait "$operator" || true; }; operator=; }
trap 'stop; exit 0' INT TERM EXIT

seen=
while sleep 1; do
  now=$(stamp)
  if [[ $now != "$seen" ]]; then
    seen=$now
    if make --no-print-directory bin/dynamo-operator; then
      stop
      bin/dynamo-operator --log-format=text "$@" &
      operator=$!
    fi
  elif [[ -n $operator ]] && ! kill -0 "$operator" 2>/dev/null; then
    wait "$operator" || echo "watch: the operator ended with $?; waiting for a change" >&2
    operator=
  fi
done
