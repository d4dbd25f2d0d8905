#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the CPython extension beside its package, python/opscope/, from what
# make built: `tools/python.sh BUILD [PYTHON [PACKAGE]]`. It is written against
# the limited API, so that any Python's headers will do. BUILD/python/ is a
# folder for PYTHONPATH with nothing but the package in it; a PACKAGE elsewhere
# gets the extension alone. Without headers it says so and is content: the
# program itself needs no Python.
set -eu
cd "$(dirname "$0")/.."
b=$1
python=${2:-${PYTHON:-python3}}
package=${3:-python/opscope}
headers=$("$python" -c 'import sysconfig
print(sysconfig.get_path("include"))' 2>/dev/null) || headers=
if [ -z "$headers" ] || [ ! -e "$headers/Python.h" ]; then
    echo "python  skipped: no headers of Python (python3-dev)"
    exit 0
fi
if [ "$package" = python/opscope ]; then
    mkdir -p "$b/python"
    ln -sfnr "$package" "$b/python/opscope"
fi
new=$package/_opscope.abi3.so
record=$package/libopscope-record.so.0
# what is newer than the extension?
if [ -e "$new" ] && [ -e "$record" ] && [ -z "$(find python/ext include \
    "$b/libopscope.a" "$b/libopscope-record.so" tools/python.sh \
    -newer "$new" -print | head -n 1)" ]; then
    exit 0
fi
echo "python  $new"
cp "$b/libopscope-record.so" "$record.tmp"
mv "$record.tmp" "$record"
# shellcheck disable=SC2086 # lists of words
${CC:-cc} -O2 -g -std=gnu11 -Wall -Wextra -fPIC -fvisibility=hidden -shared \
    ${CFLAGS-} -Iinclude -isystem "$headers" python/ext/*.c \
    "$b/libopscope.a" "$record" ${LIBS--lisal -lzstd -liberty} -pthread \
    -Wl,-rpath,'$ORIGIN' -Wl,--exclude-libs,ALL ${LDFLAGS-} -o "$new.tmp"
mv "$new.tmp" "$new"
