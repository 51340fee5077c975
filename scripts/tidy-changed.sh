#!/usr/bin/env bash
# Runs clang-tidy-22 on the .cpp files that differ from a commit (default HEAD), with the commands of build/.
#   scripts/tidy-changed.sh [COMMIT]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
linter=$(command -v clang-tidy-22) || {
  echo "scripts/tidy-changed.sh: error: clang-tidy-22 not found; run scripts/setup.sh --dev" >&2
  exit 1
}
mapfile -t files < <({
  git diff --name-only --diff-filter=d "${1:-HEAD}" -- '*.cpp'
  git ls-files --others --exclude-standard -- '*.cpp'
} | sort -u)
[ "${#files[@]}" = 0 ] && exit 0
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" "$linter" --quiet -p "${MCC_BUILD:-build}"
