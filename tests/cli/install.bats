#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# make install: a tree that works where it is put.

setup() {
    [ -x build/opscope ] || skip "no build"
    dest=$BATS_TEST_TMPDIR/dest
    rm -rf "$dest"
    run make install DESTDIR="$dest" PREFIX=/opt/opscope
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    root=$dest/opt/opscope
}

@test "install: program, libraries, man page and completions are there" {
    version=$(cat VERSION)
    run "$root/bin/opscope" --version
    [ "$status" -eq 0 ]
    [[ "$output" == *"$version"* ]]
    [ -f "$root/lib/libopscope.a" ]
    [ "$(readlink -f "$root/lib/libopscope.so")" = \
        "$(readlink -f "$root")/lib/libopscope.so.$version" ]

    grep -q '^\.TH' "$root/share/man/man1/opscope.1"
    bash -n "$root/share/bash-completion/completions/opscope"
    grep -q '^#compdef opscope' "$root/share/zsh/site-functions/_opscope"
    grep -q 'complete -c opscope' \
        "$root/share/fish/vendor_completions.d/opscope.fish"
}

@test "install: the shared library shows no symbol but the public ones" {
    run nm -D --defined-only "$root/lib/libopscope.so"
    [ "$status" -eq 0 ]
    for line in "${lines[@]}"; do
        name=${line##* }
        [[ "$name" == ops_* ]] || { echo "$name"; false; }
    done
}
