# SPDX-License-Identifier: Apache-2.0
# What the files record_*.bats share: a folder of their own, and a look at the
# figures of a run.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    OPSCOPE=$(realpath "${OPSCOPE:-build/opscope}")
    [ -x "$OPSCOPE" ] || skip "no program at $OPSCOPE"
    py=/usr/bin/python3
    dir=$BATS_TEST_TMPDIR
    cd "$dir" || return 1
    unset OPSCOPE_LOGDIR
}

rec() { "$OPSCOPE" record -o "$dir/logs" "$@"; }

# The only run's folder.
run_dir() {
    local d=("$dir"/logs/plugins/profile/*)
    [ "${#d[@]}" -eq 1 ]
    echo "${d[0]}"
}

# VALUE of COLUMN of the process called NAME.
figure() {
    "$OPSCOPE" processes "$dir/logs" --format json "${@:3}" | $py -c '
import json, sys
r = json.load(sys.stdin)
c = [x["name"] for x in r["columns"]]
rows = [dict(zip(c, row)) for row in r["rows"]]
print(*[row[sys.argv[2]] for row in rows if row["name"] == sys.argv[1]])
' "$1" "$2"
}
