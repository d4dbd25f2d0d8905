#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# README's quick start, word for word: its program, its commands, in an empty
# folder, against a tree that was installed as README says, with nothing in the
# environment but what README's `export` puts there.

# The indented block of README's section that holds this text.
block() {
    awk -v want="$1" '
        /^## Record your own program/ { on = 1; next }
        /^## / { on = 0 }
        on && /^    / { text = text substr($0, 5) "\n"; next }
        on && /^$/ && text != "" { text = text "\n"; next }
        on { if (index(text, want)) printf "%s", text; text = "" }
    ' "$readme"
}

setup() {
    readme=$PWD/README.md
    : "${BUILD:=$PWD/build}"
    [ -x "$BUILD/libopscope-record.so" ] ||
        skip "no shared library in this build"
    command -v pkg-config >/dev/null || skip "no pkg-config"
    dest=$BATS_TEST_TMPDIR/tree
    here=$BATS_TEST_TMPDIR/empty
    rm -rf "$dest" "$here"
    mkdir -p "$here"
    run make B="${BUILD#"$PWD"/}" install PREFIX="$dest"
    [ "$status" -eq 0 ] || { echo "$output"; false; }
}

# A shell that has done what README says of a prefix, with this one.
clean() {
    local set
    set=$(sed -n 's/^    export /export /p' "$readme")
    [[ $set == *PKG_CONFIG_PATH=/opt/opscope/* ]]
    env -i PATH=/usr/bin:/bin sh -c "${set//\/opt\/opscope/$dest}"'
        exec "$@"' sh "$@"
}

@test "quick start: the README's program, compiled and run as it says" {
    block 'ops_start("logs"' >"$here/train.c"
    block './train' | head -n 3 >"$here/commands"
    [ "$(grep -c . "$here/commands")" -eq 3 ]
    # one include and three lines of it are ours
    [ "$(grep -c 'opscope/record.h' "$here/train.c")" -eq 1 ]
    [ "$(grep -c 'ops_\|OPS_' "$here/train.c")" -eq 3 ]
    cd "$here"
    run clean sh -eu ./commands
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"median of 100 steps"* ]]
    [[ "$output" == *"100 calls: update"* ]]
    [[ "$output" == *"memory, resident"* ]]
    [[ "$output" == *"do first"* ]]
    [ "$(find logs -name '*.xplane.pb' | wc -l)" -eq 1 ]
    [ -z "$(find logs -name '*.part' -o -name '*.ring')" ]
}

@test "quick start: the figures are the program's" {
    block 'ops_start("logs"' >"$here/train.c"
    cd "$here"
    clean sh -eu -c "$(block './train' | head -n 1)"
    before=$(date +%s%N)
    clean ./train
    wall_us=$((($(date +%s%N) - before) / 1000))
    clean opscope steps logs --format json >steps.json
    python3 - "$wall_us" <<'EOF'
import json, sys
d = json.load(open("steps.json"))
names = [c["name"] for c in d["columns"]]
rows = [dict(zip(names, r)) for r in d["rows"]]
assert [r["step"] for r in rows] == list(range(100)), rows[:3]
total = sum(r["dur_us"] for r in rows)
assert 0 < total <= float(sys.argv[1]), (total, sys.argv[1])
# a step begins where the one before ends
for a, b in zip(rows, rows[1:]):
    assert abs(a["start_us"] + a["dur_us"] - b["start_us"]) < 0.001, (a, b)
EOF
}

@test "quick start: the README's program that reads, with and without logs" {
    block 'ops_start("logs"' >"$here/train.c"
    block 'opscope/opscope.h' >"$here/app.c"
    grep -q 'int main' "$here/app.c"
    cd "$here"
    clean sh -eu -c "$(block './train' | head -n 1)"
    # its line stands below the block
    line=$(grep -o '`cc app.c [^`]*`' "$readme" | tr -d '`')
    clean sh -eu -c "$line -Wall -Werror -o app"
    run clean ./app
    [ "$status" -eq 1 ]
    [[ "$output" == "logs: "* ]]
    clean ./train
    clean ./app >got
    clean opscope ops logs --top 20 --format csv | cut -d, -f1 | tail -n +2 |
        diff - got
}

@test "quick start: pkg-config knows the recorder" {
    run env PKG_CONFIG_PATH="$dest/lib/pkgconfig" pkg-config --cflags --libs \
        opscope-record
    [ "$status" -eq 0 ]
    [[ "$output" == *"-lopscope-record"* ]]
    # the static library is enough by itself
    block 'ops_start("logs"' >"$here/train.c"
    cd "$here"
    clean cc -O2 -I"$dest/include" train.c -o train \
        "$dest/lib/libopscope-record.a" -lm
    clean ./train
    [ "$(find logs -name '*.xplane.pb' | wc -l)" -eq 1 ]
}
