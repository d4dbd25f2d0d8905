#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ./dev where it cannot help: it must say exactly what is missing and stop.
# $tools is a PATH with the everyday commands and no compiler, make or apt.

setup() {
    tools=$BATS_TEST_TMPDIR/tools
    rm -rf "$tools"
    mkdir -p "$tools"
    for c in sh dirname getconf id uname sed head cut env mktemp tail rm cat; do
        ln -sf "$(command -v $c)" "$tools/$c"
    done
}

fake() {
    printf '#!/bin/sh\n%s\n' "$2" >"$tools/$1"
    chmod +x "$tools/$1"
}

dev() { run env -i PATH="$tools" sh ./dev "$@"; }

@test "dev: without apt-get it lists what is missing and stops" {
    dev demo
    [ "$status" -eq 1 ]
    [[ "$output" == *"neither Debian nor Ubuntu"* ]]
    [[ "$output" == *"    gcc"* ]]
    [[ "$output" == *"    make"* ]]
    [[ "$output" != *"    bats"* ]] # not needed for this command
    [[ "$output" != *"    python3"* ]]
}

@test "dev: test asks for more than demo" {
    dev test
    [ "$status" -eq 1 ]
    [[ "$output" == *"    bats"* ]]
    [[ "$output" == *"    clang"* ]]
}

@test "dev: deb asks for the tools that make packages, and no more" {
    dev deb
    [ "$status" -eq 1 ]
    [[ "$output" == *"    debhelper"* && "$output" == *"    lintian"* ]]
    [[ "$output" != *"    debootstrap"* && "$output" != *"    bats"* ]]
    dev deb --test
    [ "$status" -eq 1 ]
    [[ "$output" == *"    debootstrap"* ]]
}

@test "dev: wheel asks for what builds it, and with --test for debootstrap" {
    dev wheel
    [ "$status" -eq 1 ]
    [[ "$output" == *"    gcc"* && "$output" == *"    make"* ]]
    [[ "$output" != *"    debootstrap"* && "$output" != *"    bats"* ]]
    dev wheel --test
    [[ "$output" == *"    debootstrap"* ]]
    dev wheel --tset
    [[ "$output" == *"not '--tset'"* ]]
}

@test "dev: without root and sudo it lists what is missing and stops" {
    fake apt-get 'echo must not run; exit 0'
    fake apt-cache 'exit 1'
    rm "$tools/id"
    fake id 'echo 1000'
    dev demo
    [ "$status" -eq 1 ]
    [[ "$output" == *"needs root or sudo"* ]]
    [[ "$output" == *"    gcc"* ]]
    [[ "$output" != *"must not run"* ]]
}

@test "dev: without a network it says so, with the list" {
    rm "$tools/id"
    fake id 'echo 0'
    fake apt-cache 'exit 1'
    fake apt-get 'echo "Could not resolve host"; exit 100'
    dev demo
    [ "$status" -eq 1 ]
    [[ "$output" == *"Could not resolve host"* ]]
    [[ "$output" == *"apt-get update failed"* ]]
    [[ "$output" == *"    make"* ]]
}

@test "dev: the run-time package of clang follows the release" {
    fake apt-get 'exit 0'
    rm "$tools/id"
    fake id 'echo 1000'
    fake apt-cache 'case "$1 $2" in
"depends clang") echo "  Depends: clang-17" ;;
"show libclang-rt-17-dev") exit 0 ;;
*) exit 1 ;;
esac'
    dev test
    [[ "$output" == *"    libclang-rt-17-dev"* ]]
    fake apt-cache 'case "$1 $2" in
"depends clang") echo "  Depends: clang-11" ;;
*) exit 1 ;;
esac'
    dev test
    [[ "$output" == *"    libclang-common-11-dev"* ]]
}

@test "dev: an unknown command or argument is refused" {
    run sh ./dev tset
    [ "$status" -eq 1 ]
    [[ "$output" == *"no command 'tset'"* ]]
    run sh ./dev test --fast
    [ "$status" -eq 1 ]
    run sh ./dev deb --tset
    [ "$status" -eq 1 ]
    [[ "$output" == *"not '--tset'"* ]]
}
