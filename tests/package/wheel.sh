#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wheel.sh [FOLDER]: the wheel in FOLDER (build/wheels), as somebody meets it who
# has a bare system and Python, and no compiler, headers or libraries. It is
# unpacked, installed by pip without a network, used, and removed again; what is
# then left must be what there was before.
#
# It is skipped without root or debootstrap; bare.sh says what can be set.
# shellcheck disable=SC2016 # commands in quotes are for the shell over there
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/bare.sh
. tests/package/bare.sh

wheels=${1:-build/wheels}
profile=tests/data/torch_cnn/torch_cnn.pt.trace.json.gz
bare_alone tests/package/wheel.sh "$wheels"
wheel=$(ls "$wheels"/opscope-*manylinux*.whl 2>/dev/null)
[ "$(printf '%s\n' "$wheel" | grep -c .)" -eq 1 ] || {
    not_ok "a wheel" "there is not one in $wheels; ./dev wheel makes it"
    exit 1
}
file=${wheel##*/}
version=$(cat VERSION)

# --- Python alone ------------------------------------------------------------------

bare_system python3
cp "$wheel" "$profile" tests/python/smoke.py "$root/tmp/"
cat >"$root/tmp/train.py" <<'PY'
import sys
import opscope
for i in range(5):
    opscope.step(i)
    with opscope.scope("forward"):
        sum(range(1000))
print("hooked", any(type(f).__module__ == "sitecustomize" or
                    type(f).__name__ == "_Finder" for f in sys.meta_path))
PY
try "Python alone: the wheel is unpacked" \
    python3 -m zipfile -e "/tmp/$file" /tmp/flat
try "Python alone: it reads and records" env PYTHONPATH=/tmp/flat \
    PYTHONDONTWRITEBYTECODE=1 python3 /tmp/smoke.py "/tmp/${profile##*/}"
try "it holds the notices of what is linked" \
    sh -c 'for n in isal zstd iberty; do
        grep -qi copyright /tmp/flat/opscope/_notices/$n.txt || exit 1; done'
try "it holds the headers, the stubs and the licence" sh -c 'cd /tmp/flat &&
    ls opscope/include/opscope/record.h opscope/reading.pyi opscope/py.typed &&
    find opscope-*.dist-info -name LICENSE | grep .'

# --- pip ---------------------------------------------------------------------------

try "a virtual environment" sh -c 'apt-get -q -y --no-install-recommends \
    install python3-venv && python3 -m venv /opt/venv' || exit 1
snapshot >"$work/bare"
if try "pip installs it, with no network" /opt/venv/bin/pip install -q \
    --no-index --no-compile "/tmp/$file"; then
    try "the command runs" /opt/venv/bin/opscope --version
    says "the command knows its version" "$version"
    try "the command reads a profile" \
        /opt/venv/bin/opscope steps "/tmp/${profile##*/}" --format csv
    try "it needs the C library alone" sh -c '
        cd /opt/venv/lib/python3*/site-packages || exit 1
        for f in opscope/_bin/opscope opscope/*.so* opscope.libs/*; do
            [ -e "$f" ] || continue
            ldd "$f" || exit 1
        done >/tmp/needs
        ! grep -vE "linux-vdso|ld-linux|lib(c|m|dl|pthread)\.so|site-packages|statically" \
            /tmp/needs'
    try "Python reads and records" env PYTHONDONTWRITEBYTECODE=1 \
        /opt/venv/bin/python /tmp/smoke.py "/tmp/${profile##*/}"
    try "a script is recorded as it is" sh -c 'cd /tmp &&
        PATH=/opt/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 \
        opscope record -o /tmp/logs -- python train.py'
    says "the script found the hook" "hooked True"
    try "what it recorded can be read" \
        /opt/venv/bin/opscope steps /tmp/logs --format csv
    try "all five steps are there" sh -c \
        '[ "$(/opt/venv/bin/opscope steps /tmp/logs --format csv | wc -l)" -eq 6 ]'
fi

# --- an op in C --------------------------------------------------------------------

cat >"$root/tmp/op.c" <<'C'
#include <opscope/record.h>
void custom_op(void) {
    OPS_SCOPE("custom_op");
}
C
cat >"$root/tmp/op.py" <<'PY'
import ctypes
import opscope
op = ctypes.CDLL("/tmp/op.so")
with opscope.profile("/tmp/op-logs") as p:
    opscope.step(0)
    for _ in range(7):
        op.custom_op()
assert p.ops(name="custom_op")[0].calls == 7
PY
try "pip removes it" /opt/venv/bin/pip uninstall -q -y opscope
nothing_left "removed, nothing is left" "$work/bare"
if try "a compiler" sh -c 'apt-get -q -y --no-install-recommends install gcc \
    libc6-dev && /opt/venv/bin/pip install -q --no-index "/tmp/'"$file"'"'; then
    try "an op in C is built with the wheel's headers and library" sh -c '
        where() { /opt/venv/bin/python -c "import opscope as o; print($1)"; }
        cc -shared -fPIC -I"$(where "o.get_include()")" /tmp/op.c -o /tmp/op.so \
            "$(where "o.get_library()")"'
    try "what it records lies in Python's profile" \
        /opt/venv/bin/python /tmp/op.py
fi
exit "$failed"
