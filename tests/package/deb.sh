#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb.sh [FOLDER]: the packages in FOLDER (build/deb), as somebody meets them who
# has a bare system and apt. The system is made by debootstrap, of the release
# that this one is; the packages stand in a repository of its own, so that apt has
# to find what they need. They are installed, used, removed and purged, and what
# is then left must be what there was before.
#
# It is skipped without root or debootstrap; bare.sh says what can be set.
# shellcheck disable=SC2016 # commands in quotes are for the shell over there
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/bare.sh
. tests/package/bare.sh

debs=${1:-build/deb}
profile=tests/data/torch_cnn/torch_cnn.pt.trace.json.gz
command -v dpkg-scanpackages >/dev/null || skip "no dpkg-scanpackages"
bare_alone tests/package/deb.sh "$debs"
ls "$debs"/*.deb >/dev/null 2>&1 || {
    not_ok "packages" "there are none in $debs; ./dev deb makes them"
    exit 1
}

bare_system ""
# The packages stand in a repository of the bare system's own.
if ! { mkdir "$root/packages" && cp "$debs"/*.deb "$root/packages/" &&
    (cd "$root/packages" && dpkg-scanpackages . >Packages 2>/dev/null) &&
    echo "deb [trusted=yes] file:/packages ./" \
        >"$root/etc/apt/sources.list.d/opscope.list" &&
    within apt-get -q update; }; then
    not_ok "a repository" "apt does not take it"
    log_tail
    exit 1
fi
install="apt-get -q -y --no-install-recommends install"
version=$(cat VERSION)

# --- the program -----------------------------------------------------------------

cp "$profile" "$root/tmp/"
snapshot >"$work/bare"
# shellcheck disable=SC2086 # a list of words
if try "the program: apt installs it" $install opscope; then
    try "the program: it runs" opscope --version
    says "the program: it knows its version" "$version"
    try "the program: it reads a profile" \
        opscope steps "/tmp/${profile##*/}" --format csv
    try "the program: its manual page" \
        sh -c 'dpkg -L opscope | grep -qx /usr/share/man/man1/opscope.1.gz'
    try "the program: its completions" sh -c '
        for f in bash-completion/completions/opscope \
            zsh/vendor-completions/_opscope \
            fish/vendor_completions.d/opscope.fish; do
            [ -s /usr/share/$f ] || { echo $f; exit 1; }
        done'
    try "the program: apt removes it" apt-get -q -y remove opscope
    try "the program: removed, it is gone" \
        sh -c '! command -v opscope && [ ! -e /usr/share/doc/opscope ]'
    try "the program: apt purges it, and what it alone needed" \
        apt-get -q -y --purge autoremove opscope
    nothing_left "the program: purged, nothing is left" "$work/bare"
fi

# --- the libraries ---------------------------------------------------------------

cat >"$root/tmp/train.c" <<'C'
#include <opscope/record.h>
int main(void) {
    ops_start("/tmp/logs", 0);
    for (int i = 0; i < 3; i++) {
        ops_step(i);
        OPS_SCOPE("work");
    }
    return 0;
}
C
cat >"$root/tmp/reader.c" <<'C'
#include <opscope/opscope.h>
#include <stdio.h>
int main(void) {
    struct ops_profile *p;
    struct ops_err err;
    if (ops_open(&p, "/tmp/logs", &err) != 0) return puts(err.text), 1;
    ops_close(p);
    puts(ops_version());
    return 0;
}
C
cat >"$root/tmp/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.5...3.25)
project(user C)
find_package(opscope REQUIRED)
find_package(opscope-record REQUIRED)
add_executable(reader reader.c)
target_link_libraries(reader PRIVATE opscope::opscope)
add_executable(reader-static reader.c)
target_link_libraries(reader-static PRIVATE opscope::opscope-static)
add_executable(train train.c)
target_link_libraries(train PRIVATE opscope::record)
add_executable(train-static train.c)
target_link_libraries(train-static PRIVATE opscope::record-static)
END

# shellcheck disable=SC2086 # a list of words
try "a compiler" $install gcc libc6-dev make pkg-config cmake || exit 1
snapshot >"$work/tools"

# shellcheck disable=SC2086 # a list of words
if try "the recorder: apt installs it" $install libopscope-record-dev; then
    try "the recorder: the library comes with it" \
        dpkg-query -W libopscope-record0
    try "the recorder: pkg-config gives flags that compile" sh -c \
        'cd /tmp && cc train.c -o train \
            $(pkg-config --cflags --libs opscope-record)'
    try "the recorder: the program records" \
        sh -c '/tmp/train && find /tmp/logs -name "*.xplane.pb" | grep .'
    try "the recorder: the static library is enough" sh -c \
        'cd /tmp && cc train.c -o train-static \
            $(pkg-config --cflags opscope-record) \
            -Wl,-Bstatic -lopscope-record -Wl,-Bdynamic -pthread &&
            ./train-static && ! ldd train-static | grep libopscope'
fi
# shellcheck disable=SC2086 # a list of words
if try "the reader: apt installs it" $install libopscope-dev opscope; then
    try "the reader: pkg-config gives flags that compile" sh -c \
        'cd /tmp && cc reader.c -o reader $(pkg-config --cflags --libs opscope)'
    try "the reader: it opens what was recorded" /tmp/reader
    says "the reader: it knows its version" "$version"
    try "the program: it opens what was recorded" \
        opscope steps /tmp/logs --format csv
    try "CMake: finds both libraries" \
        sh -c 'cmake -S /tmp -B /tmp/out && cmake --build /tmp/out'
    try "CMake: what it built runs" sh -c 'cd /tmp/out && for p in train reader
        do ./$p && ./$p-static || exit 1; done'
fi
rm -rf "$root/tmp/logs" "$root/tmp/out"
ours="opscope libopscope-dev libopscope0 libopscope-record-dev libopscope-record0"
# shellcheck disable=SC2086 # a list of words
try "the libraries: apt removes them" apt-get -q -y remove $ours
try "the libraries: removed, they are gone" \
    sh -c '! ls /usr/include/opscope /usr/lib/*/libopscope* 2>/dev/null'
# shellcheck disable=SC2086 # a list of words
try "the libraries: apt purges them, and what they alone needed" \
    apt-get -q -y --purge autoremove $ours
nothing_left "the libraries: purged, nothing is left" "$work/tools"
exit "$failed"
