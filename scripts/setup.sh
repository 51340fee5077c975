#!/usr/bin/env bash
# Installs what mcc needs on Debian 12, through apt alone. Run it as often as you like: when everything is
# there it asks dpkg once and touches no network.
#
#   scripts/setup.sh             build mcc and run its tests
#   scripts/setup.sh --examples  also what examples that fetch a checkpoint need (pip)
#   scripts/setup.sh --dev       also the pinned formatter and linter, and the sanitizer runtime
#   scripts/setup.sh --print     print the package names and install nothing
set -euo pipefail

packages=(
  clang-22 lld-22 g++                   # compilers; `cc` and libstdc++.a for the final link of a model
  cmake ninja-build ccache              # build
  libmlir-22-dev mlir-22-tools          # MLIR: libraries, mlir-tblgen
  llvm-22-dev llvm-22-tools             # LLVM: libraries; lit, FileCheck, not
  libzstd-dev zlib1g-dev                # what LLVM's CMake files look for
  nlohmann-json3-dev libcli11-dev       # JSON, command lines
  libpcre2-dev libutf8proc-dev          # Unicode in the tokenizer
  libxxhash-dev                         # digests of the weights file
  libopenblas-dev                       # bar for the matrix kernels, graph networks
  doctest-dev python3                   # unit tests; end-to-end tests and scripts
  qemu-user                             # runs executables as an older CPU, in tests
)
examples=(python3-pip)
dev=(clang-format-22 clang-tidy-22 libclang-rt-22-dev)

fail() {
  echo "scripts/setup.sh: error: $*" >&2
  exit 1
}

print=0
for argument in "$@"; do
  case $argument in
  --examples) packages+=("${examples[@]}") ;;
  --dev) packages+=("${dev[@]}") ;;
  --print) print=1 ;;
  *)
    echo "scripts/setup.sh: error: unknown argument '$argument'; known are --examples, --dev and --print" >&2
    exit 2
    ;;
  esac
done
if [ "$print" = 1 ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  fail "this is no Debian system (no dpkg-query or apt-get); install the equivalent of: ${packages[*]}"
fi

# Prints the packages of "$@" that are not installed.
missing() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' || true)
  printf '%s\n' "$@" | grep -vxF -- "$installed" || true
}

mapfile -t wanted < <(missing "${packages[@]}")
[ "${#wanted[@]}" = 0 ] && exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || fail "missing packages: ${wanted[*]}; run this script as root, or install sudo"
  as_root=(sudo)
fi
apt() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@"
}

# Mirrors fail now and then: three attempts, each with fresh lists. A broken list of another vendor must not
# stop us, so only the result of the install counts.
for attempt in 1 2 3; do
  echo "scripts/setup.sh: installing ${#wanted[@]} packages: ${wanted[*]} (attempt $attempt)"
  apt update || true
  if apt install -y --no-install-recommends "${wanted[@]}"; then
    exit 0
  fi
  sleep $((attempt * 5))
done
mapfile -t wanted < <(missing "${packages[@]}")
fail "could not install: ${wanted[*]}; LLVM 22 comes from the suite 'bookworm-security' of Debian 12, is it among the apt sources?"
