#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct, compiles it to out/smollm2/ and lets it continue a prompt:
#   examples/02-smollm2/run.sh                          a prompt of ours
#   examples/02-smollm2/run.sh "Water boils at" -n 32   yours; arguments go to the executable
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
mcc=${MCC_BUILD:-$root/build}/bin/mcc
[ -x "$mcc" ] || { "$root/scripts/setup.sh" && "$root/scripts/build"; }
gguf=$("$here/fetch.sh")
out=$root/out/smollm2/compiled
if ! [ "$out/manifest.json" -nt "$gguf" ] || ! [ "$out/manifest.json" -nt "$mcc" ]; then
  "$mcc" "$gguf" -o "$out"
fi
[ $# -gt 0 ] || set -- "The capital of France is" -n 48
exec "$out/model" "$@"
