#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every allocation fails once. Runs a command with its first, its second, ...
# allocation failing, until there is no such allocation. Each run must end by
# itself: with the right output, or with exit code 4 or 2 and one line on
# stderr.
#   failmalloc.sh            the cases below, for the program in $OPSCOPE
#   failmalloc.sh ARGS...    one case: $OPSCOPE ARGS
set -u
cd "$(dirname "$0")/../.." || exit 1
opscope=${OPSCOPE:-build/opscope}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# Built once for all cases of a build.
fake=${BUILD:-build}/failmalloc.so
if [ ! "$fake" -nt tests/fake/failmalloc.c ]; then
    ${CC:-cc} -std=gnu11 -O2 -fPIC -shared -o "$fake.$$" \
        tests/fake/failmalloc.c && mv -f "$fake.$$" "$fake" || exit 1
fi

# is_one_line FILE: with an end, and nothing behind it.
is_one_line() {
    { read -r line && ! read -r line && [ -z "$line" ]; } <"$1"
}

# fault N ARGS...: puts into $wrong what is wrong with a run whose allocation N
# fails. It starts nothing but the program where it can: this runs very often.
fault() {
    at=$1
    shift
    LD_PRELOAD="$fake" FAILMALLOC_AT=$at FAILMALLOC_HIT=$dir/hit.$at \
        "$opscope" "$@" >"$dir/out" 2>"$dir/err"
    rc=$?
    case $rc in
    0) cmp -s "$dir/out" "$dir/right" || wrong="another output" ;;
    2 | 4)
        is_one_line "$dir/err" ||
            wrong="exit $rc with $(wc -l <"$dir/err") lines on stderr"
        ;;
    *) wrong="exit $rc: $(head -c 200 "$dir/err" | tr '\n' ' ')" ;;
    esac
}

# try ARGS...: all allocations of one command.
try() {
    n=0 wrong=''
    if ! "$opscope" "$@" >"$dir/right" 2>/dev/null; then
        echo "not ok failmalloc $*: fails even with memory"
        return 1
    fi
    while [ -z "$wrong" ]; do
        n=$((n + 1))
        fault $n "$@" 2>/dev/null
        [ -e "$dir/hit.$n" ] || break
    done
    [ $n -gt 1 ] || wrong="nothing was allocated"
    if [ -n "$wrong" ]; then
        echo "not ok failmalloc $*: allocation $n: $wrong"
        return 1
    fi
    echo "ok failmalloc $*: $((n - 1)) allocations"
}

# small PATTERN: the smallest such file in tests/data.
small() {
    find tests/data -name "$1" -type f -size -1024k -exec ls -Sr {} + |
        head -n 1
}

if [ $# -gt 0 ]; then
    try "$@"
    exit
fi
bad=0
for analysis in info steps ops kernels copies memory allocs roofline; do
    try $analysis "$(small '*.pt.trace.json.gz')" --format json || bad=1
done
for analysis in idle launch hints critical; do # a profile with a device
    try $analysis tests/data/torch_graphs/torch_graphs.pt.trace.json.gz \
        --format json || bad=1
done
for analysis in overview tree stacks; do # compiled programs
    try $analysis tests/data/jax_mlp/vm.xplane.pb --format json || bad=1
done
try ranks tests/data/torch_ddp --format json || bad=1
try segments tests/data/torch_cnn/torch_cnn.snapshot.pickle.gz \
    --format json || bad=1
for pattern in '*.xplane.pb*' 'run_metadata*.pb*' '*.trace.json.gz'; do
    file=$(small "$pattern")
    [ -n "$file" ] || continue
    try ops "$file" --format json || bad=1
    try steps "$file" --format csv || bad=1
done
try input tests/data/tf_graph_fast/vm.xplane.pb --format json || bad=1
try convert "$(small '*.xplane.pb*')" - --to chrome || bad=1
exit $bad
