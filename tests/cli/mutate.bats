#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The mutator itself: its checks must be able to fail, and a seed must mean one
# mutant.

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    : "${BUILD:=build}"
}

python() { PYTHONPATH=tests/fuzz /usr/bin/python3 -c "$1"; }

@test "mutate: what is wrong with an output is said" {
    python '
import mutant_checks as c

def table(rows, columns=(("dur_us", "time"),), name="x"):
    cells = ", ".join(
        "{\"name\": \"%s\", \"type\": \"%s\", \"unit\": null, \"help\": null}"
        % k for k in columns)
    return ("{\"opscope\": \"1\", \"analysis\": \"%s\", \"sources\": [], "
            "\"columns\": [%s], \"rows\": [%s], \"total_rows\": 9, "
            "\"remarks\": [], \"missing\": [], \"notes\": []}"
            % (name, cells, rows)).encode()

def bad(data):
    try:
        return c.table_problems(c.Table(data), False)
    except ValueError as e:
        return [str(e)]

assert bad(table("[1.5]")) == [] and bad(table("[null]")) == []
for rows in ("[-1]", "[NaN]", "[1, 2]", "[\"x\"]", "", "[1],"):
    assert bad(table(rows)), rows
assert bad(table("[1]").replace(b"opscope", b"\xff"))
assert bad(table("[1]").replace(b"\"notes\"", b"\"missing\""))
assert c.csv_problems(b"a,b\r\n1\r\n", None)
assert not c.csv_problems(b"a,b\r\n1,\"x\r\ny\"\r\n", None)
assert c.text_problems(b"a\x1b[31m\n") and c.text_problems(b"\xc2\x9b")
assert not c.text_problems(b"a\x1b[31m\n", True)
assert c.stderr_problems(2, b"") and c.stderr_problems(139, b"")
assert c.stderr_problems(2, b"opscope: a\nb\n")
assert not c.stderr_problems(2, b"opscope: a\n")
phases = [("step", "int"), ("dur_us", "time")] + [
    (p, "time") for p in c.PHASES]
for last, wrong in ((1, 0), (2, 1)):
    t = c.Table(table("[1, 7, 1, 1, 1, 1, 1, 1, %d]" % last, phases, "steps"))
    assert bool(c.sum_problems({("steps", ()): t})) == bool(wrong)
'
}

@test "mutate: every mutation can be written" {
    python '
import random, mutant_json as j, mutant_pickle as k, mutant_proto as p
data = "tests/data"
event = p.event_seeds(data)
kinds = [(j, {"chrome": j.CHROME.encode()}, j.load, j.dump),
         (k, k.seeds(data), k.load, k.dump),
         (p, p.stepstats_seeds(data), lambda b: p.parse(b, "RunMetadata"),
          p.dump), (p, event, p.parse_events, p.dump_events)]
for module, seeds, load, dump in kinds:
    name = sorted(seeds)[0]
    assert load(seeds[name]) is not None
    for _, f in module.MUTATIONS:
        for i in range(3):
            rng = random.Random("%s %d" % (f.__name__, i))
            out = dump(f(rng, load(seeds[name]), lambda: load(seeds[name])))
            assert isinstance(out, bytes)
name = sorted(event)[0]
assert p.dump_events(p.parse_events(event[name])) == event[name]
'
}

@test "mutate: a seed makes the same files again" {
    [ -x "$BUILD/mutate/every" ] || skip "make mutate"
    for i in 1 2; do
        PYTHONPATH=tests/fuzz /usr/bin/python3 - "$BUILD" \
            "$BATS_TEST_TMPDIR/m" <<'PY'
import sys
from mutant_kinds import Mutant, World
world = World(sys.argv[1])
for seed in 11, 12, 14:
    Mutant(world, seed, None, "folder").write("%s/%d" % (sys.argv[2], seed))
PY
        mv "$BATS_TEST_TMPDIR/m" "$BATS_TEST_TMPDIR/$i"
    done
    [ "$(ls "$BATS_TEST_TMPDIR/1")" = "11
12
14" ]
    [ -n "$(find "$BATS_TEST_TMPDIR/1/14" -type f)" ]
    diff -r --no-dereference "$BATS_TEST_TMPDIR/1" "$BATS_TEST_TMPDIR/2"
}
