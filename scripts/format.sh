#!/usr/bin/env bash
# Formats the C++ sources with clang-format 22, the one version that scripts/setup.sh --dev installs: others
# lay out some files differently.
#   scripts/format.sh            every tracked source and every new one that git does not ignore
#   scripts/format.sh FILE...    these files
#   scripts/format.sh --check    change nothing, exit 1 where something would change
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
formatter=$(command -v clang-format-22) || {
  echo "scripts/format.sh: error: clang-format-22 not found; run scripts/setup.sh --dev" >&2
  exit 1
}
mode=(-i)
if [ "${1:-}" = --check ]; then
  mode=(--dry-run --Werror)
  shift
fi
if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.cpp' '*.h' '*.c' '*.cu' '*.cuh')
fi
"$formatter" "${mode[@]}" "${files[@]}"
