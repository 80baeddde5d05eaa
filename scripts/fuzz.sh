#!/usr/bin/env bash
# Runs every libFuzzer target of tests/fuzz and the generator of random kernels, each for MINUTES (make fuzz).
#
#   scripts/fuzz.sh MINUTES BUILD FUZZ_BUILD
#
# BUILD holds random_kernels, FUZZ_BUILD the libFuzzer programs NAME_fuzz. Prints one line a target: what it executed and
# what it found. Findings and logs stay in FUZZ_BUILD/findings, corpora that have grown in FUZZ_BUILD/corpus; a finding
# that is mended belongs into the target's corpus in tests/fuzz. FUZZ_TARGETS="problem store" runs only those. Exit code: 1 if
# anything was found.
set -uo pipefail
[[ $# == 3 && $1 =~ ^[0-9]+$ ]] || { echo "usage: scripts/fuzz.sh MINUTES BUILD FUZZ_BUILD" >&2; exit 2; }
readonly seconds=$(($1 * 60)) build=$2 fuzz_build=$3
readonly sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly findings=$fuzz_build/findings
failed=0

mkdir -p "$findings"
# Databases are made by the thousand.
[[ -d /dev/shm ]] && export TMPDIR=${TMPDIR:-/dev/shm}
if [[ -z ${FUZZ_TARGETS:-} ]]; then
  for corpus in "$sources"/tests/fuzz/corpus_*; do FUZZ_TARGETS+=" ${corpus##*/corpus_}"; done
  FUZZ_TARGETS+=" random_kernels"
fi

run_libfuzzer() {
  local name=$1 corpus=$fuzz_build/corpus/$1 log=$findings/$1.log
  mkdir -p "$corpus"
  "$fuzz_build/${name}_fuzz" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$findings/$name-" "$corpus" "$sources/tests/fuzz/corpus_$name" >"$log" 2>&1
  local code=$? executed
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if ((code == 0)); then
    printf '%-16s %s executions, no finding\n' "$name" "${executed:-0}"
    return
  fi
  failed=1
  printf '%-16s %s executions, FINDING: %s (%s)\n' "$name" "${executed:-?}" \
    "$(grep -m1 -E '^SUMMARY|ERROR: libFuzzer' "$log" || tail -n 1 "$log")" \
    "$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)"
}

for name in $FUZZ_TARGETS; do
  if [[ $name == random_kernels ]]; then
    "$build/random_kernels" --seconds "$seconds" --seed "${FUZZ_SEED:-$(date +%s)}" | tee "$findings/random_kernels.log"
    ((PIPESTATUS[0] == 0)) || failed=1
  else
    run_libfuzzer "$name"
  fi
done
exit $failed
