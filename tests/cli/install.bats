#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# make install: a tree that works where it is put.

setup() {
    : "${BUILD:=$PWD/build}"
    [ -x "$BUILD/opscope" ] || skip "no build"
    export B=${BUILD#"$PWD"/} # what make installs from
    dest=$BATS_TEST_TMPDIR/dest
    rm -rf "$dest"
    run make install DESTDIR="$dest" PREFIX=/opt/opscope
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    root=$dest/opt/opscope
}

# What lies below a folder and is no folder, by its path from there.
files() { (cd "$1" && find . ! -type d | LC_ALL=C sort); }

# A program that records, as C; then one that reads, which prints a version.
programs() {
    cat >"$1/train.c" <<'C'
#include <opscope/record.h>
int main(int argc, char **argv) {
    (void)argc;
    ops_start(argv[1], 0);
    for (int i = 0; i < 3; i++) {
        ops_step(i);
        OPS_SCOPE("work");
    }
    return 0;
}
C
    cat >"$1/reader.c" <<'C'
#include <opscope/opscope.h>
#include <stdio.h>
int main(int argc, char **argv) {
    struct ops_profile *p;
    struct ops_result *r;
    struct ops_err err;
    (void)argc;
    if (ops_open(&p, argv[1], &err) != 0 ||
        ops_run(p, "steps", "", &r, &err) != 0)
        return 1;
    puts(ops_version());
    ops_result_free(r);
    ops_close(p);
    return 0;
}
C
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

@test "install: every folder can be another, and the files that tell know it" {
    where="PREFIX=/a EXEC_PREFIX=/b BINDIR=/c/bin LIBDIR=/b/lib/x INCLUDEDIR=/d
        MANDIR=/e PKGCONFIGDIR=/f CMAKEDIR=/g/cmake BASHCOMPDIR=/h ZSHCOMPDIR=/i
        FISHCOMPDIR=/j"
    tree=$BATS_TEST_TMPDIR/apart
    run make install DESTDIR="$tree" $where
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    v=$(cat VERSION)
    [ "$(files "$tree" | grep -v 'lib/x\|g/cmake')" = "./c/bin/opscope
./d/opscope/err.h
./d/opscope/opscope.h
./d/opscope/record.h
./d/opscope/version.h
./e/man1/opscope.1
./f/opscope-record.pc
./f/opscope.pc
./h/opscope
./i/_opscope
./j/opscope.fish" ]
    [ -f "$tree/b/lib/x/libopscope-record.so.$v" ]
    grep -qx 'libdir=${exec_prefix}/lib/x' "$tree/f/opscope.pc"
    grep -qx 'includedir=/d' "$tree/f/opscope.pc"
    run grep -r "$BATS_TEST_TMPDIR" "$tree/f" "$tree/g"
    [ "$status" -eq 1 ] # DESTDIR is in none

    run make uninstall DESTDIR="$tree" $where
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    [ -z "$(files "$tree")" ]
}

@test "install: DATADIR moves what is shared, a relative folder is refused" {
    tree=$BATS_TEST_TMPDIR/data
    run make install DESTDIR="$tree" PREFIX=/p DATADIR=/data
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    [ ! -e "$tree/p/share" ]
    [ -f "$tree/data/man/man1/opscope.1" ]
    [ -f "$tree/data/zsh/site-functions/_opscope" ]
    for prefix in p "/p q"; do
        for what in install uninstall; do
            run make $what DESTDIR="$BATS_TEST_TMPDIR/none/" PREFIX="$prefix"
            [ "$status" -ne 0 ]
            [[ "$output" == *"a folder is "* ]]
            [ ! -e "$BATS_TEST_TMPDIR/none" ] # nothing was written before
            [ ! -e q ]
        done
    done
}

@test "install: everybody can read what was installed, whatever the umask" {
    tree=$BATS_TEST_TMPDIR/masked
    run sh -c "umask 077 && make install DESTDIR='$tree' PREFIX=/p"
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    [ "$(files "$tree" | wc -l)" -eq "$(files "$dest" | wc -l)" ]
    [ -z "$(find "$tree" -type f ! -perm -444)" ]
    [ -x "$tree/p/bin/opscope" ]
}

@test "install: uninstall takes what install brought, and nothing else" {
    before="./opt/opscope/bin/other
./opt/opscope/include/opscope/mine.h
./opt/opscope/lib/libopscope.so.9"
    for f in $before; do : >"$dest/$f"; done
    run make uninstall DESTDIR="$dest" PREFIX=/opt/opscope
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    [ "$(files "$dest")" = "$before" ]
    [ ! -e "$root/lib/cmake/opscope" ] # a folder of its own, empty
    run make uninstall DESTDIR="$dest" PREFIX=/opt/opscope # again: no harm
    [ "$status" -eq 0 ]
}

@test "install: pkg-config gives flags that work, also for static linking" {
    command -v pkg-config >/dev/null || skip "no pkg-config"
    tree=$BATS_TEST_TMPDIR/pc
    mkdir -p "$tree"
    programs "$tree"
    export PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dest
    for l in opscope opscope-record; do
        [ "$(pkg-config --modversion $l)" = "$(cat VERSION)" ]
        case $l in opscope) p=reader ;; *) p=train ;; esac
        cc -o "$tree/$p" "$tree/$p.c" $(pkg-config --cflags --libs $l)
        cc -o "$tree/$p-static" "$tree/$p.c" $(pkg-config --cflags $l) \
            "$root/lib/lib$l.a" \
            $(pkg-config --static --libs $l | sed "s/-l$l //")
    done
    LD_LIBRARY_PATH=$root/lib "$tree/train" "$tree/logs"
    "$tree/train-static" "$tree/logs-static"
    [ "$(LD_LIBRARY_PATH=$root/lib "$tree/reader" "$tree/logs")" = \
        "$(cat VERSION)" ]
    "$tree/reader-static" "$tree/logs-static"
}

@test "install: CMake finds both libraries, wherever the tree lies" {
    command -v cmake >/dev/null || skip "no cmake"
    tree=$BATS_TEST_TMPDIR/cmake
    mkdir -p "$tree"
    mv "$root" "$tree/moved" # not where it was installed
    programs "$tree"
    v=$(cat VERSION)
    cat >"$tree/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.5...3.25)
project(user C)
find_package(opscope $v REQUIRED)
find_package(opscope-record ${v%.*} REQUIRED)
find_package(opscope-record $v REQUIRED) # twice does no harm
find_package(opscope 99 QUIET)
if(opscope_FOUND)
  message(FATAL_ERROR "a version that is not there was found")
endif()
add_executable(reader reader.c)
target_link_libraries(reader PRIVATE opscope::opscope)
add_executable(reader-static reader.c)
target_link_libraries(reader-static PRIVATE opscope::opscope-static)
add_executable(train train.c)
target_link_libraries(train PRIVATE opscope::record)
add_executable(train-static train.c)
target_link_libraries(train-static PRIVATE opscope::record-static)
END
    run cmake -S "$tree" -B "$tree/out" -DCMAKE_PREFIX_PATH="$tree/moved"
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    run cmake --build "$tree/out"
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    for p in train train-static; do "$tree/out/$p" "$tree/$p.logs"; done
    for p in reader reader-static; do
        [ "$("$tree/out/$p" "$tree/train.logs")" = "$v" ]
        [ "$("$tree/out/$p" "$tree/train-static.logs")" = "$v" ]
    done
    # each is linked with what its name says
    ldd "$tree/out/train" | grep -q "$tree/moved/lib/libopscope-record.so.0"
    ldd "$tree/out/reader" | grep -q "$tree/moved/lib/libopscope.so.0"
    for p in train-static reader-static; do
        [ "$(ldd "$tree/out/$p" | grep -c libopscope)" -eq 0 ]
    done

    rm "$tree/moved/lib/libopscope-record.so" # half a package is none
    run cmake -S "$tree" -B "$tree/again" -DCMAKE_PREFIX_PATH="$tree/moved"
    [ "$status" -ne 0 ]
    # CMake breaks the sentence into lines
    [[ "$(echo $output)" == *"libopscope-record.so is missing"* ]]
}

@test "install: the archive of make dist builds by itself" {
    command -v xz >/dev/null || skip "no xz"
    [ -z "$(git status --porcelain -- Makefile VERSION src include tools demo \
        2>&1)" ] || skip "no repository, or not all of it is committed"
    out=$BATS_TEST_TMPDIR/dist
    mkdir -p "$out"
    run make dist B="$out"
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    name=opscope-$(cat VERSION)
    tar -xf "$out/$name.tar.xz" -C "$out"
    [ ! -e "$out/$name/.git" ]
    # With our objects, later than its sources: only what it lacks is compiled.
    find "$out/$name" -exec touch -d 2001-01-01 {} +
    mkdir -p "$out/$name/build"
    cp -a "$BUILD/obj" "$out/$name/build/"
    run env -u B GIT_DIR=/nonexistent make -C "$out/$name" PYTHON=false
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    [ "$("$out/$name/build/opscope" --version)" = \
        "$("$BUILD/opscope" --version)" ]
}
