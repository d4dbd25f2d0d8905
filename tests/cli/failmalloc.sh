#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# failmalloc.sh OPSCOPE FILE [ARGS...]: runs `OPSCOPE ops FILE --format json`
# (or ARGS) with the first, the second, ... allocation failing, until there is
# no such allocation. Each run must end by itself: with the right output, or
# with exit code 4 or 2 and one line on stderr.
set -u
opscope=$1 file=$2
shift 2
[ $# -gt 0 ] || set -- ops "$file" --format json
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
${CC:-cc} -std=gnu11 -O2 -fPIC -shared -o "$dir/failmalloc.so" \
    "$root/tests/fake/failmalloc.c" || exit 1
"$opscope" "$@" >"$dir/right" 2>/dev/null || {
    echo "failmalloc: $opscope $* fails even with memory"
    exit 1
}
n=0 bad=0 refused=0
while :; do
    n=$((n + 1))
    rm -f "$dir/hit"
    LD_PRELOAD="$dir/failmalloc.so" FAILMALLOC_AT=$n FAILMALLOC_HIT="$dir/hit" \
        "$opscope" "$@" >"$dir/out" 2>"$dir/err"
    rc=$?
    [ -e "$dir/hit" ] || break
    case $rc in
    0) cmp -s "$dir/out" "$dir/right" || rc="0 with another output" ;;
    2 | 4)
        refused=$((refused + 1))
        [ "$(wc -l <"$dir/err")" -eq 1 ] || rc="$rc without one line"
        ;;
    esac
    case $rc in
    0 | 2 | 4) ;;
    *)
        bad=$((bad + 1))
        echo "failmalloc: allocation $n: exit $rc: $(head -c 200 "$dir/err")"
        [ "$bad" -lt 20 ] || break
        ;;
    esac
done
echo "failmalloc: $((n - 1)) allocations failed, $refused refused, $bad wrong"
[ "$n" -gt 1 ] && [ "$bad" -eq 0 ]
