#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every allocation fails once. Runs a command with its first, its second, ...
# allocation failing, until there is no such allocation. Each run must end by
# itself: with the right output, or with exit code 4 or 2 and one line on
# stderr. What all commands allocate to read a file is `info`'s to try: the
# others begin where they allocate something else.
#   failmalloc.sh COMMAND PATH ARGS...    one case, for the program in $OPSCOPE
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

# sizes FILE ARGS...: lists what a command allocates.
sizes() {
    LD_PRELOAD="$fake" FAILMALLOC_LIST=$1 "$opscope" "$2" "$3" >/dev/null 2>&1
}

# alike COMMAND PATH: how many allocations come first that `info` has as well.
alike() {
    sizes "$dir/info" info "$2"
    sizes "$dir/this" "$1" "$2"
    # the number of the line where they part; the end of one is no such line
    { cat "$dir/this"; echo end; } | cmp "$dir/info" - 2>&1 |
        sed -n 's/.* line \([0-9]*\).*/\1/p'
}

# try ARGS...: all allocations of one command.
try() {
    n=0 wrong=''
    rm -f "$dir"/hit.* # of the case before
    [ "$1" = info ] || [ "$1" = convert ] || n=$(($(alike "$1" "$2") - 1))
    first=$n
    if ! "$opscope" "$@" >"$dir/right" 2>/dev/null; then
        echo "not ok failmalloc $*: fails even with memory"
        return 1
    fi
    while [ -z "$wrong" ]; do
        n=$((n + 1))
        fault $n "$@" 2>/dev/null
        [ -e "$dir/hit.$n" ] || break
    done
    [ $n -gt $((first + 1)) ] || wrong="nothing was allocated"
    if [ -n "$wrong" ]; then
        echo "not ok failmalloc $*: allocation $n: $wrong"
        return 1
    fi
    echo "ok failmalloc $*: $((n - 1 - first)) allocations, $first before"
}

try "$@"
