#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh SECONDS [TARGET...]: builds and runs each fuzz target that long. What
# it finds stays in found/ of the build's folder; the corpus grows in corpus/.
set -u
cd "$(dirname "$0")/../.."
b=build-clang-address-undefined
seconds=${1:-60}
[ $# -gt 0 ] && shift
make -s -j2 -f tests/fuzz/fuzz.mk fuzz >/dev/null || {
    echo "not ok fuzz: the targets do not build"
    exit 1
}
mkdir -p "$b/found"
[ $# -gt 0 ] || set -- $(cd tests/fuzz && ls fuzz_*.c | sed 's/\.c$//')
bad=0
for target in "$@"; do
    mkdir -p "$b/corpus/$target" "$b/seeds/$target"
    log=$b/found/$target.log
    # 0: another one each time
    if "$b/fuzz/$target" -max_total_time="$seconds" -timeout=20 \
        -seed="${CHANCE_SEED:-0}" \
        -rss_limit_mb=4096 -max_len=131072 -print_final_stats=1 \
        -artifact_prefix="$b/found/$target-" \
        "$b/corpus/$target" "$b/seeds/$target" >"$log" 2>&1
    then
        runs=$(sed -n 's/.*number_of_executed_units: *//p' "$log")
        echo "ok $target: ${runs:-0} inputs in $seconds s"
    else
        bad=$((bad + 1))
        why=$(grep -m 1 -E 'Assertion|runtime error|SUMMARY|ERROR' "$log")
        echo "not ok $target: ${why:-it failed}; see $log"
    fi
done
exit $((bad > 0))
