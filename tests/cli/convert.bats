#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# opscope convert: every profile there and back, and what it refuses.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    OPSCOPE=${OPSCOPE:-build/opscope}
    [ -x "$OPSCOPE" ] || skip "no program at $OPSCOPE"
    profile=tests/data/torch_cpu/torch_cpu.pt.trace.json.gz
    out=$BATS_TEST_TMPDIR/out
}

# The check is in Python, with its own JSON reader: the file must be strict
# JSON, and what opscope reads from it what it read from the source. Of a build
# with sanitizers it is enough that the copy is read: its numbers are those of
# the plain one.
compare() {
    if sanitized "${OPSCOPE%/opscope}"; then
        "$OPSCOPE" trace "$2" --format json > /dev/null
        return
    fi
    /usr/bin/python3 - "$OPSCOPE" "$1" "$2" <<'PY'
import collections, gzip, json, subprocess, sys

opscope, source, copy = sys.argv[1:]

def run(analysis, path):
    out = subprocess.run([opscope, analysis, path, "--format", "json"],
                         capture_output=True, text=True, check=True).stdout
    # times stay text: equal means equal to the picosecond
    r = json.loads(out, parse_float=str)
    return [c["name"] for c in r["columns"]], r

def same(what, a, b):
    if a != b:
        sys.exit(f"{source}: {what}: {str(a)[:300]} != {str(b)[:300]}")

def nan(word):
    sys.exit(f"{copy}: {word} is no JSON")

opened = gzip.open if copy.endswith(".gz") else open
with opened(copy, "rt", encoding="utf-8") as f:
    def once(pairs):
        keys = [k for k, _ in pairs]
        if len(keys) != len(set(keys)):
            sys.exit(f"{copy}: a key comes twice: {keys}")
        return dict(pairs)
    events = json.load(f, parse_constant=nan,
                       object_pairs_hook=once)["traceEvents"]

cols, a = run("trace", source)
_, b = run("trace", copy)
at = {name: i for i, name in enumerate(cols)}
for keys in (["kind"], ["kind", "name", "start_us", "dur_us"],
             ["name", "depth", "step"]):
    count = [collections.Counter(tuple(row[at[k]] for k in keys)
                                 for row in r["rows"]) for r in (a, b)]
    same("spans by " + ", ".join(keys), *count)
same("epoch", a["sources"][0]["epoch_unix_ns"], b["sources"][0]["epoch_unix_ns"])
same("rank", a["sources"][0]["rank"], b["sources"][0]["rank"])

# Arguments, but for the launch numbers, which are the file's own.
def args(row, path):
    d = json.loads(row[at["args"]] or "{}")
    if path == copy or a["sources"][0]["format"] == "chrome":
        d.pop("correlation_id", None)
    elif "correlation_id" in d:
        d["correlation"] = d.pop("correlation_id")
    d.pop("step_num", None)
    return json.dumps(d, sort_keys=True)
same("arguments",
     *[collections.Counter((row[at["name"]], args(row, p)) for row in r["rows"])
       for r, p in ((a, source), (b, copy))])

for analysis in ("steps", "kernels", "copies"):
    cols, x = run(analysis, source)
    _, y = run(analysis, copy)
    # an estimate of the recording's own cost, which each format has its own
    # of; and what only XLA's program tells, which no Chrome trace holds
    skip = {i for i, c in enumerate(cols)
            if c.startswith("bare_") or c in ("scope", "source")}
    same(analysis, *[[[v for i, v in enumerate(row) if i not in skip]
                      for row in r["rows"]] for r in (x, y)])

# Links, counted in the file itself: a device span with a launch number finds
# its call, and the arrows are as many.
def number(e):
    return e.get("args", {}).get("correlation_id")
calls = {number(e) for e in events
         if e.get("kind", "").split(" ")[0] in ("api", "runtime", "op", "other")
         and number(e) is not None}
work = [e for e in events if number(e) is not None
        and e.get("kind") in ("kernel", "copy", "memset", "sync")]
if not all(number(e) in calls for e in work):
    sys.exit(f"{copy}: a launch number leads nowhere")
arrows = sum(e["ph"] == "f" and e["cat"] == "launch" for e in events)
same("arrows", len(work), arrows)
if any(r[at["kind"]] == "kernel" for r in a["rows"]) and not arrows:
    sys.exit(f"{copy}: no link survived")
PY
}

@test "convert: every profile there and back as .json" {
    n=0
    for f in tests/data/*/*.xplane.pb tests/data/*/*.json.gz tests/data/tf_v1/*.pb; do
        rm -f "$out.json"
        "$OPSCOPE" convert "$f" "$out.json"
        compare "$f" "$out.json"
        n=$((n + 1))
    done
    [ "$n" -ge 15 ]
}

@test "convert: and as .json.gz, which holds the same bytes" {
    for f in tests/data/jax_mlp/vm.xplane.pb \
        tests/data/torch_stack/torch_stack.pt.trace.json.gz; do
        rm -f "$out.json" "$out.json.gz"
        "$OPSCOPE" convert "$f" "$out.json.gz"
        gzip -t "$out.json.gz"
        "$OPSCOPE" convert "$f" "$out.json"
        gzip -dc "$out.json.gz" | cmp - "$out.json"
        compare "$f" "$out.json.gz"
    done
}

@test "convert: a second time changes nothing but the numbers of launches" {
    "$OPSCOPE" convert tests/data/jax_mlp/vm.xplane.pb "$out.1.json"
    "$OPSCOPE" convert "$out.1.json" "$out.2.json"
    compare "$out.1.json" "$out.2.json"
    [ "$(grep -c '"ph":"X"' "$out.1.json")" -eq "$(grep -c '"ph":"X"' "$out.2.json")" ]
    [ "$(grep -c '"ph":"C"' "$out.1.json")" -eq "$(grep -c '"ph":"C"' "$out.2.json")" ]
}

@test "convert: memory comes back as it was" {
    f=tests/data/torch_stack/torch_stack.pt.trace.json.gz
    "$OPSCOPE" convert "$f" "$out.json"
    "$OPSCOPE" allocs "$f" --format csv > "$out.want"
    [ "$(wc -l < "$out.want")" -gt 100 ]
    "$OPSCOPE" allocs "$out.json" --format csv | cmp - "$out.want"
    "$OPSCOPE" memory "$f" --format csv > "$out.want"
    "$OPSCOPE" memory "$out.json" --format csv | cmp - "$out.want"
}

@test "convert: the ranks of a job in one file, their GPUs apart" {
    "$OPSCOPE" convert tests/data/torch_ddp "$out.json"
    run "$OPSCOPE" kernels "$out.json" --format csv
    [ "$status" -eq 0 ]
    [[ $output == *",GPU 0,"* && $output == *",GPU 1,"* ]]
    a=$("$OPSCOPE" trace tests/data/torch_ddp --format csv | wc -l)
    [ "$a" -eq "$("$OPSCOPE" trace "$out.json" --format csv | wc -l)" ]
}

@test "convert: - writes to standard output and needs --to" {
    "$OPSCOPE" convert "$profile" "$out.json"
    "$OPSCOPE" convert "$profile" - --to chrome | cmp - "$out.json"
    run "$OPSCOPE" convert "$profile" -
    [ "$status" -eq 1 ]
    [[ $output == *"--to"* ]]
}

@test "convert: an unknown suffix or name says what there is" {
    run "$OPSCOPE" convert "$profile" "$out.xyz"
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "opscope: $out.xyz: "*".json .json.gz"* ]]
    run "$OPSCOPE" convert "$profile" "$out.gz"
    [ "$status" -eq 1 ]
    run "$OPSCOPE" convert "$profile" "$out.json" --to crome
    [ "$status" -eq 1 ]
    [[ $output == *"did you mean 'chrome'?" ]]
    [ ! -e "$out.json" ] && [ ! -e "$out.xyz" ]
}

@test "convert: an existing OUT is refused, --force replaces it" {
    echo mine > "$out.json"
    run "$OPSCOPE" convert "$profile" "$out.json"
    [ "$status" -eq 1 ]
    [[ $output == *"--force"* ]]
    [ "$(cat "$out.json")" = mine ]
    "$OPSCOPE" convert "$profile" "$out.json" --force
    grep -q traceEvents "$out.json"
    mkfifo "$out.pipe"
    for special in "$out.pipe" /dev/null "$BATS_TEST_TMPDIR"; do
        run "$OPSCOPE" convert "$profile" "$special" --to chrome --force
        [ "$status" -eq 1 ]
    done
    [ -p "$out.pipe" ] && [ -c /dev/null ]
    # into the file that is being read
    cp "$out.json" "$out.self.json"
    "$OPSCOPE" convert "$out.self.json" "$out.self.json" --force
    compare "$out.json" "$out.self.json"
}

@test "convert: a failure leaves nothing behind" {
    mkdir -p "$out.d"
    run "$OPSCOPE" convert /nonexistent "$out.d/a.json"
    [ "$status" -eq 2 ]
    run "$OPSCOPE" convert "$profile" "$out.d/no/a.json"
    [ "$status" -eq 2 ]
    (ulimit -f 8; trap '' XFSZ; "$OPSCOPE" convert "$profile" "$out.d/a.json") || true
    [ -z "$(ls -A "$out.d")" ]
    # the signal that a limit on the size of files sends is nothing to die of
    for name in a.json a.json.gz; do
        status=0
        (ulimit -f 8; "$OPSCOPE" convert "$profile" "$out.d/$name") \
            2> "$out.err" || status=$?
        [ "$status" -eq 2 ]
        [[ $(cat "$out.err") == *"File too large"* ]]
        [ -z "$(ls -A "$out.d")" ]
    done
    run "$OPSCOPE" convert "$profile"
    [ "$status" -eq 1 ]
}
