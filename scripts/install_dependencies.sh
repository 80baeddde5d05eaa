#!/usr/bin/env bash
# Installs from Debian what the build and the tests of laneshift need and this machine lacks. Does nothing where all is there.
#
# Uses the apt sources that the machine is configured with and adds none. Needs root or sudo only if something is missing.
set -euo pipefail

required=(
  g++ cmake ninja-build                 # C++20 compiler and build
  llvm-22-dev                           # NVPTX back end, with its static libraries
  zlib1g-dev libzstd-dev                # what those libraries link
  libsqlite3-dev libspdlog-dev          # store, log
  libcli11-dev nlohmann-json3-dev       # the laneshift program
  libgtest-dev libbenchmark-dev         # tests, bench
  python3 pkg-config                    # tests of generated files, documents and the installed package
)
optional=(ccache lld-22)                # faster rebuilds and links; the build does without

say() { printf 'laneshift: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# The packages among "$@" that are not installed.
missing_of() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' || true)
  local package
  for package in "$@"; do grep -qxF "$package" <<<"$installed" || printf '%s\n' "$package"; done
}

# Not a pipe into `grep -q`: that ends at its first match, apt-cache dies of SIGPIPE, and pipefail calls the match a failure.
is_known() { grep -q '^  Candidate: [^(]' <<<"$(LC_ALL=C apt-cache policy "$1" 2>/dev/null)"; }

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  say "this is not a Debian system; nothing was installed. The build needs the equivalents of: ${required[*]}"
  exit 0
fi

mapfile -t missing < <(missing_of "${required[@]}")
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || die "missing: ${missing[*]}. Install them as root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

say "missing: ${missing[*]}; running ${as_root[*]+${as_root[*]} }apt-get update"
"${as_root[@]}" apt-get update -qq || say "apt-get update had failures; going on with the package lists that are there"

for package in "${missing[@]}"; do
  is_known "$package" && continue
  if [[ $package == llvm-22-* ]]; then
    die "$package is not in this machine's apt sources. The LLVM project keeps an apt repository for each Debian" \
        "release: take its signing key into /etc/apt/keyrings, add a source file for the llvm-toolchain suite of your" \
        "release and version 22 that is signed by that key, as the LLVM project's page on Debian packages describes, and" \
        "run this again. laneshift adds no package source on its own."
  fi
  die "$package is not in this machine's apt sources; laneshift needs Debian 12 or newer, section main"
done
for package in "${optional[@]}"; do
  if [[ -n $(missing_of "$package") ]] && is_known "$package"; then missing+=("$package"); fi
done

say "installing from Debian: ${missing[*]}"
install=(env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get install --no-install-recommends -q)
"${install[@]}" --assume-no "${missing[@]}" 2>/dev/null | sed -n 's/^Need to get/laneshift: to download:/p' >&2 || true
"${as_root[@]}" "${install[@]}" -y -o Dpkg::Use-Pty=0 "${missing[@]}" >&2
say "installed"
