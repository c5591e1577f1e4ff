#!/usr/bin/env bash
# The script of `make fuzz`: runs libFuzzer on every target of hive-fuzz in turn, continued from the last run.
#
#   tests/fuzz/run.sh MINUTES [TARGET...]     minutes in all, over these targets or all
#
# New inputs gather in target/campaigns/fuzz/corpus, beside the committed ones in tests/fuzz/corpus, and failing inputs in .../findings. Each run of a
# target is a line of target/campaigns/fuzz.jsonl. A finding becomes a file in tests/fuzz/corpus, which the main suite runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo=${CARGO:-cargo}
minutes=${1:-5}
shift || true
targets=("$@")
if [ "${#targets[@]}" = 0 ]; then
  mapfile -t targets < <(sed -n '/^\[\[bin\]\]/,/^path/s/^name = "\(.*\)"/\1/p' tests/fuzz/Cargo.toml)
fi

fail() {
  echo "fuzz: $*" >&2
  exit 1
}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || fail "MINUTES must be a whole number above 0, not '$minutes'"
"$cargo" fuzz --version >/dev/null 2>&1 || fail "cargo-fuzz is missing: cargo install cargo-fuzz"
command -v "${CXX:-c++}" >/dev/null || fail "a C++ compiler (${CXX:-c++}) is missing, which libFuzzer is built with; on Debian: apt-get install g++"

here=target/campaigns/fuzz
ledger=target/campaigns/fuzz.jsonl
mkdir -p "$here"
# Without a sanitizer a stable toolchain is enough: the code has no unsafe, and an overflow or an index out of bounds panics.
"$cargo" fuzz build --fuzz-dir tests/fuzz --target-dir target/fuzz --sanitizer none
triple=$("${RUSTC:-rustc}" -vV | sed -n 's/^host: //p')

seconds=$((minutes * 60 / ${#targets[@]}))
found=0
for name in "${targets[@]}"; do
  binary=target/fuzz/$triple/release/$name
  [ -x "$binary" ] || fail "there is no target '$name'"
  mkdir -p "$here/corpus/$name" "$here/findings/$name"
  log=$here/$name.log
  started=$SECONDS
  echo "== $name, ${seconds} s"
  status=0
  "$binary" "$here/corpus/$name" "tests/fuzz/corpus/$name" -dict="tests/fuzz/dictionaries/$name.dict" -max_total_time="$seconds" \
    -max_len=4096 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -detect_leaks=0 -verbosity=1 \
    -artifact_prefix="$here/findings/$name/" >"$log" 2>&1 || status=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  findings=0
  if [ "$status" != 0 ]; then
    findings=1
    found=$((found + 1))
    grep -v '^#' "$log" | tail -n 40
  fi
  printf '{"date":"%s","target":"%s","seconds":%d,"executions":%d,"findings":%d}\n' \
    "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$name" "$((SECONDS - started))" "${executions:-0}" "$findings" | tee -a "$ledger"
done

echo "== all runs so far"
awk -F'[:,}]' '
  {
    for (i = 1; i <= NF; i++) {
      if ($i ~ /"target"/) { name = $(i + 1); gsub(/"/, "", name) }
      if ($i ~ /"seconds"/) seconds[name] += $(i + 1)
      if ($i ~ /"executions"/) executions[name] += $(i + 1)
      if ($i ~ /"findings"/) findings[name] += $(i + 1)
    }
  }
  END {
    for (name in seconds) {
      printf "%-10s %8d s %14d executions %4d findings\n", name, seconds[name], executions[name], findings[name] | "sort"
      all_seconds += seconds[name]; all_executions += executions[name]; all_findings += findings[name]
    }
    close("sort")
    printf "%-10s %8d s %14d executions %4d findings\n", "in all", all_seconds, all_executions, all_findings
  }' "$ledger"
[ "$found" = 0 ] || fail "$found targets failed; the inputs are in $here/findings"
