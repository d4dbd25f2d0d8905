#!/usr/bin/env bats
# Bad input as files: a clear line and an exit code, or a counted note; never a
# crash, a hang or a silent loss. What is about bytes alone is in the unit
# tests of the importers.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    OPSCOPE=${OPSCOPE:-build/opscope}
    [ -x "$OPSCOPE" ] || skip "no program at $OPSCOPE"
    T=$BATS_TEST_TMPDIR
    PYTHON=/usr/bin/python3
    [ -x "$PYTHON" ] || PYTHON=python3
}

# One Chrome event: name, ts, dur, more.
event() {
    printf '{"ph":"X","name":"%s","pid":1,"tid":1,"ts":%s,"dur":%s%s}' \
        "$1" "$2" "$3" "${4:-}"
}

# A small PyTorch profile with a kernel that has a launch.
small() {
    printf '{"schemaVersion":1,"traceEvents":[\n%s,\n%s,\n%s\n]}\n' \
        '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":1,"dur":9}' \
        '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":2,"dur":1,"args":{"correlation":5}}' \
        '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":4,"dur":5,"args":{"device":0,"stream":7,"correlation":5}}'
}

# Fails with that exit code and one line that names the path.
refused() {
    local code=$1 path=$2
    run limited 20 "$OPSCOPE" info "$path"
    [ "$status" -eq "$code" ]
    [ "${#lines[@]}" -eq 1 ]
    [[ ${lines[0]} == "opscope: $path: "* ]]
}

# Read, with that note in it.
noted() {
    local path=$1 note=$2
    run limited 20 "$OPSCOPE" info "$path" --format json
    [ "$status" -eq 0 ]
    [[ $output == *"\"id\": \"$note\""* ]]
}

# The value of a metric of info.
metric() {
    "$OPSCOPE" info "$1" --format json | "$PYTHON" -c '
import json, sys
for row in json.load(sys.stdin)["rows"]:
    if row[0] == sys.argv[1]:
        print(row[1])' "$2"
}

@test "an empty file says that it is empty" {
    : > "$T/empty.json"
    refused 2 "$T/empty.json"
    [[ $output == *empty* ]]
}

@test "a folder with nothing in it says what was looked for" {
    mkdir "$T/none"
    refused 2 "$T/none"
    [[ $output == *xplane.pb* && $output == *pt.trace.json* ]]
}

@test "a path that is not there" {
    refused 2 "$T/nowhere.json"
}

@test "a text file is told from a profile" {
    echo "dear diary" > "$T/a.json"
    refused 2 "$T/a.json"
    [[ $output == *text* ]]
}

@test "JSON without events is told from a trace" {
    echo '{"a": 1}' > "$T/a.json"
    refused 2 "$T/a.json"
    [[ $output == *traceEvents* ]]
    echo '{"traceEvents": 5}' > "$T/b.json"
    refused 2 "$T/b.json"
}

@test "a file that may not be read" {
    small > "$T/a.json"
    chmod 000 "$T/a.json"
    if [ "$(id -u)" -ne 0 ]; then
        refused 2 "$T/a.json"
    else
        command -v setpriv > /dev/null || skip "root reads everything"
        open=$(mktemp -d /tmp/readable-XXXXXX)
        cp "$OPSCOPE" "$open/opscope"
        cp "$T/a.json" "$open/a.json"
        chmod 755 "$open" "$open/opscope"
        chmod 000 "$open/a.json"
        run setpriv --reuid 65534 --regid 65534 --clear-groups \
            "$open/opscope" info "$open/a.json"
        rm -rf "$open"
        [ "$status" -eq 2 ]
    fi
    [[ $output == *"ermission denied"* ]]
}

@test "what may not be read is named, and does not hide the others" {
    who=
    if [ "$(id -u)" -eq 0 ]; then
        command -v setpriv > /dev/null || skip "root reads everything"
        who="setpriv --reuid 65534 --regid 65534 --clear-groups"
    fi
    open=$(mktemp -d /tmp/readable-XXXXXX)
    cp "$OPSCOPE" "$open/opscope"
    mkdir -p "$open/log/a" "$open/log/b"
    small > "$open/log/a/x.pt.trace.json"
    small > "$open/log/a/shut.pt.trace.json"
    : > "$open/log/a/empty.pt.trace.json"
    chmod -R a+rX "$open"
    chmod 000 "$open/log/b" "$open/log/a/shut.pt.trace.json"
    run limited 20 $who "$open/opscope" info "$open/log" --width 0
    chmod 755 "$open/log/b"
    rm -rf "$open"
    [ "$status" -eq 0 ]
    [[ $output == *"log/b: it may not be read; ask its owner"* ]]
    [[ $output == *"shut.pt.trace.json: it may not be read; ask"* ]]
    [[ $output == *"empty.pt.trace.json: it is empty; its program was"* ]]
}

@test "a FIFO that nobody writes into and a device do not hang" {
    mkfifo "$T/pipe"
    refused 2 "$T/pipe"
    [[ $output == *pipe* ]]
    refused 2 /dev/zero
}

@test "a FIFO with a profile in it is read, also when the writer comes late" {
    mkfifo "$T/pipe"
    (sleep 0.3; small > "$T/pipe") &
    run limited 20 "$OPSCOPE" info "$T/pipe"
    [ "$status" -eq 0 ]
    [[ $output == *kineto* ]]
    run limited 20 "$OPSCOPE" info <(small)
    [ "$status" -eq 0 ]
}

@test "a FIFO in a folder does not hang the search" {
    mkdir "$T/log"
    mkfifo "$T/log/x.pt.trace.json"
    small > "$T/log/y.pt.trace.json"
    run limited 20 "$OPSCOPE" info "$T/log"
    [ "$status" -eq 0 ]
}

@test "a gz bomb hits the limit: exit 4" {
    "$PYTHON" - "$T/bomb.gz" <<'P'
import sys, zlib
c = zlib.compressobj(9, zlib.DEFLATED, 31)
with open(sys.argv[1], "wb") as f:
    f.write(c.compress(b'{"traceEvents":[') + c.flush(zlib.Z_FULL_FLUSH))
    # a block that refers to nothing before it may stand there many times
    block = c.compress(b" " * (1 << 24)) + c.flush(zlib.Z_FULL_FLUSH)
    for _ in range(512):
        f.write(block)
P
    run limited 60 "$OPSCOPE" info "$T/bomb.gz"
    [ "$status" -eq 4 ]
    [ "${#lines[@]}" -eq 1 ]
}

@test "a gz file that is cut gives what was there, and a note" {
    f=tests/data/torch_cnn/torch_cnn.pt.trace.json.gz
    head -c 200000 "$f" > "$T/cut.json.gz"
    noted "$T/cut.json.gz" gzip-damaged
    [ "$(metric "$T/cut.json.gz" spans)" -gt 100 ]
}

@test "a gz file with a bad checksum gives all of it, and a note" {
    small | gzip > "$T/bad.json.gz"
    size=$(stat -c %s "$T/bad.json.gz")
    printf '\377' | dd of="$T/bad.json.gz" bs=1 seek=$((size - 8)) \
        conv=notrunc 2> /dev/null
    noted "$T/bad.json.gz" gzip-damaged
    [ "$(metric "$T/bad.json.gz" spans)" -eq 3 ]
}

@test "a gz file that is cut before the first event is a clear error" {
    small | gzip | head -c 22 > "$T/cut.json.gz"
    run limited 20 "$OPSCOPE" info "$T/cut.json.gz"
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
}

@test "a file that is cut keeps what came before, and a note" {
    small | head -c -60 > "$T/cut.json"
    noted "$T/cut.json" file-cut
    [ "$(metric "$T/cut.json" spans)" -eq 2 ]
}

@test "one bad UTF-8 byte, control characters, bad escapes, half surrogates" {
    printf '[%s,%s,%s,%s]' "$(event $'a\xff' 1 1)" "$(event $'b\x01' 2 1)" \
        "$(event 'c\q' 3 1)" "$(event 'd\ud800' 4 1)" > "$T/a.json"
    noted "$T/a.json" utf8-mended
    noted "$T/a.json" json-mended
    [ "$(metric "$T/a.json" spans)" -eq 4 ]
    # what goes out is JSON and UTF-8 again
    "$OPSCOPE" trace "$T/a.json" --format json | "$PYTHON" -m json.tool \
        > /dev/null
}

@test "NaN, inf, 1e400, numbers as strings, trailing commas, BOM, CRLF" {
    printf '\xef\xbb\xbf[\r\n%s,\r\n%s,\r\n%s,\r\n%s,\r\n%s,\r\n]\r\n' \
        "$(event a 1 1)" "$(event b NaN 1)" "$(event c inf 1)" \
        "$(event d 1e400 1)" "$(event e '"5"' '"2.5"')" > "$T/a.json"
    noted "$T/a.json" time-out-of-range
    noted "$T/a.json" number-as-string
    noted "$T/a.json" json-mended
    [ "$(metric "$T/a.json" spans)" -eq 2 ]
}

@test "negative, zero and overflowing times" {
    printf '[%s,%s,%s,%s]' "$(event a -5 1)" "$(event b 0 0)" \
        "$(event c 3 -1)" "$(event d 9300000000000 1)" > "$T/a.json"
    noted "$T/a.json" negative-duration
    [[ $output == *time-* ]]
    [ "$(metric "$T/a.json" spans)" -eq 3 ]
}

@test "spans that cross, and a child that ends after its parent" {
    printf '[%s,%s,%s]' "$(event a 0 10)" "$(event b 5 10)" \
        "$(event c 6 20)" > "$T/a.json"
    noted "$T/a.json" crossing-spans
    [ "$(metric "$T/a.json" spans)" -eq 3 ]
}

@test "kernels with no launch, launches with no kernel" {
    small | sed 's/"stream":7,"correlation":5/"stream":7,"correlation":6/' \
        > "$T/a.json"
    noted "$T/a.json" kernel-without-launch
    noted "$T/a.json" launch-without-kernel
}

@test "nesting ten thousand deep, duplicate keys, ids as text" {
    "$PYTHON" - > "$T/a.json" <<'P'
deep = '{"a":' * 10000 + '1' + '}' * 10000
print('[{"ph":"X","name":"x","name":"y","pid":"p","tid":"main","ts":1,'
      '"dur":1,"args":%s}]' % deep)
P
    run limited 20 "$OPSCOPE" trace "$T/a.json"
    [ "$status" -eq 0 ]
    [[ $output == *y* ]]
}

@test "a name of a megabyte is kept and shortened on the screen" {
    "$PYTHON" -c 'print("[{\"name\":\"" + "k" * (1 << 20) + "\",\"ph\":\"X\","
        "\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1}]")' > "$T/a.json"
    run limited 20 "$OPSCOPE" trace "$T/a.json" --width 100
    [ "$status" -eq 0 ]
    [ "${#output}" -lt 5000 ]
    [ "$("$OPSCOPE" trace "$T/a.json" --format json | wc -c)" -gt 1000000 ]
}

# Writes a profile of over 17 MB with all the trouble there is in its middle.
grow() {
    "$PYTHON" - "$1" "$2" <<'P'
import sys
kind = sys.argv[2]
with open(sys.argv[1], "w") as f:
    f.write('{"schemaVersion":1,"traceEvents":[\n')
    for i in range(120000):
        f.write('%s{"ph":"X","cat":"cpu_op","name":"op %d","pid":1,"tid":%d,'
                '"ts":%d.5,"dur":%d,"args":{"External id":%d,"text":'
                '"{\\"ph\\":\\"X\\", \\"name\\":\\"no\\"},{\\"ph\\""}}'
                % (",\n" if i else "", i % 300, i % 3, i, i % 9, i))
        if kind == "pairs" and i % 500 == 7:
            f.write(',{"ph":"%s","name":"b","pid":1,"tid":5,"ts":%d}'
                    % ("BE"[i // 500 % 2], i))
        if kind == "damage" and i % 5000 == 2500:
            f.write(',{"ph":"X","name":"x"{{[" ')
    f.write(']}\n')
P
}

@test "one thread or two: the same bytes out" {
    for kind in plain pairs damage; do
        grow "$T/$kind.json" $kind
        for a in info ops steps; do
            limited 60 "$OPSCOPE" $a "$T/$kind.json" --threads 1 \
                --format json > "$T/one"
            limited 60 "$OPSCOPE" $a "$T/$kind.json" --threads 2 \
                --format json > "$T/two"
            cmp "$T/one" "$T/two"
        done
        [ "$(metric "$T/$kind.json" "framework ops")" -ge 119000 ]
    done
}

@test "a file that shrinks while it is read" {
    grow "$T/whole.json" plain
    for size in 1 5000 4000000 9000000 16000000; do
        for wait in 0.001 0.01 0.03; do
            cp "$T/whole.json" "$T/a.json"
            limited 60 "$OPSCOPE" ops "$T/a.json" > "$T/out" 2> "$T/err" &
            pid=$!
            sleep $wait
            truncate -s $size "$T/a.json"
            status=0
            wait $pid || status=$?
            [ $status -eq 0 ] || [ $status -eq 2 ]
            [ $status -eq 0 ] || grep -q '^opscope: ' "$T/err"
        done
    done
}

@test "bad input: arguments that are no JSON are shown as text" {
    printf '{"traceEvents":[%s]}' \
        "$(event a 1 1 ',"args":{"list":[NaN,00012,tru],"text":"x"}')" \
        > "$T/args.json"
    run "$OPSCOPE" trace "$T/args.json" --format json
    [ "$status" -eq 0 ]
    echo "$output" | "$PYTHON" -c '
import json, sys
def no(x): raise ValueError(x)
doc = json.load(sys.stdin, parse_constant=no)
at = [c["name"] for c in doc["columns"]].index("args")
args = json.loads(doc["rows"][0][at], parse_constant=no)
assert args == {"list": "[NaN,00012,tru]", "text": "x"}, args'
}

@test "bad input: a mean over devices is as fine as its parts" {
    cat > "$T/two.json" << 'END'
{"schemaVersion": 1, "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9,
 "tid": 9, "ts": 0, "dur": 10},
{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1,
 "dur": 1.001, "args": {"device": 0, "stream": 7}},
{"ph": "X", "cat": "kernel", "name": "b", "pid": 1, "tid": 7, "ts": 1,
 "dur": 1.002, "args": {"device": 1, "stream": 7}},
{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 9, "tid": 9, "ts": 0,
 "dur": 9}]}
END
    run "$OPSCOPE" steps "$T/two.json" --format csv
    [ "$status" -eq 0 ]
    echo "$output" | "$PYTHON" -c '
import csv, sys
from decimal import Decimal as D
row = next(csv.DictReader(sys.stdin))
parts = "compute comm copy input launch host other".split()
total = sum(D(row[p + "_us"]) for p in parts)
assert total == D(row["dur_us"]), (total, row)'
}

@test "a limit on the size of files is an error like any other" {
    gz=tests/data/torch_cpu/torch_cpu.pt.trace.json.gz
    run bash -c "ulimit -f 100; exec \"$OPSCOPE\" info $gz"
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "opscope: $gz: "*"ulimit -f"* ]]
    plain=tests/data/jax_mlp/vm.xplane.pb
    run bash -c "ulimit -f 8; exec \"$OPSCOPE\" trace $plain --format json --top 0 \
        > $T/out"
    [ "$status" -eq 2 ]
    [[ $output == *"cannot write: File too large"* ]]
    # what it starts does not inherit how it takes the signal
    run "$OPSCOPE" record -q -o "$T/logs" -- \
        sed -n 's/^SigIgn:[^0-9a-f]*//p' /proc/self/status
    [ "${#output}" -eq 16 ]
    [ $((16#${output:8} >> ($(kill -l XFSZ) - 1) & 1)) -eq 0 ]
}

@test "bad input: frames of a snapshot that share one long name" {
    "$PYTHON" - "$T/long.pickle" << 'END'
import pickle, sys
n, name = 10000, "x" * 800000
trace = [{"action": "alloc", "addr": i * 512, "size": 512, "stream": 0,
          "time_us": i, "frames": [{"name": name, "filename": name, "line": i}]}
         for i in range(n)]
with open(sys.argv[1], "wb") as f:
    pickle.dump({"segments": [], "device_traces": [trace],
                 "allocator_settings": {}}, f)
END
    run limited 20 "$OPSCOPE" allocs "$T/long.pickle" -q
    [ "$status" -eq 0 ]
    run limited 20 "$OPSCOPE" memory "$T/long.pickle" --by stack -q
    [ "$status" -eq 0 ]
    run limited 20 "$OPSCOPE" overview "$T/long.pickle" -q
    [ "$status" -eq 0 ]
}

@test "bad input: one long text of many kernels, read and written" {
    "$PYTHON" - "$T/shared.xplane.pb" << 'END'
import sys
def vi(v):
    out = b""
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])
def num(n, v): return vi(n << 3) + vi(v)
def sub(n, b): return vi(n << 3 | 2) + vi(len(b)) + b
def name(field, i, text):
    return sub(field, num(1, i) + sub(2, num(1, i) + sub(2, text)))
stat = sub(4, num(1, 3) + num(7, 2))  # a reference to the text
events = b"".join(sub(4, num(1, 1) + num(2, i) + num(3, 1) + stat)
                  for i in range(60000))
plane = (num(1, 1) + sub(2, b"/device:GPU:0") + name(5, 3, b"kernel_details") +
         name(5, 2, b"a:1 " * 16000) + name(4, 1, b"k") +
         sub(3, num(1, 1) + sub(2, b"Stream #1") + events))
with open(sys.argv[1], "wb") as f:
    f.write(sub(1, plane))
END
    run limited 20 "$OPSCOPE" overview "$T/shared.xplane.pb" -q
    [ "$status" -eq 0 ]
    size=$("$OPSCOPE" convert "$T/shared.xplane.pb" - --to chrome | wc -c)
    [ "$size" -gt 67108864 ]
    [ "$size" -lt 300000000 ]
}
