# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# A bare system, made by debootstrap in a folder of its own, and commands in it
# as cases: what deb.sh and wheel.sh share. They are run from the root of the
# repository and print `ok NAME` and `not ok NAME: why`.
#
# $MIRROR: where packages come from; else what apt on this machine says.
# $RELEASE: of which release the system is; else of the one that this one is.
# It takes minutes, and some 250 MB in $TMPDIR.

failed=0
ok() { printf 'ok %s\n' "$1"; }
not_ok() {
    printf 'not ok %s: %s\n' "$1" "$2"
    # shellcheck disable=SC2034 # the scripts exit with it
    failed=1
}
skip() {
    printf 'ok packages # skip %s\n' "$1"
    exit 0
}

# bare_alone SCRIPT ARG...: what is mounted here is nobody else's, and goes with
# this process, which is the script anew.
bare_alone() {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    command -v debootstrap >/dev/null || skip "no debootstrap"
    [ -z "${OPSCOPE_UNSHARED-}" ] || return 0
    unshare --mount true 2>/dev/null || skip "may not have mounts of its own"
    OPSCOPE_UNSHARED=1 exec unshare --mount sh "$@"
}

# shellcheck disable=SC2317 # the trap calls it
bare_leave() {
    umount "$root/dev/shm" 2>/dev/null
    while umount "$root/proc" 2>/dev/null; do :; done
    rm -rf --one-file-system "$work"
}

# within COMMAND...: in the bare system; its output is kept for a failure.
within() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} \
        chroot "$root" "$@" </dev/null >"$log" 2>&1
}

log_tail() { tail -n 20 "$log" | sed 's/^/    /'; }

# try NAME COMMAND...: a case is a command in the bare system.
try() {
    name=$1
    shift
    if within "$@"; then
        ok "$name"
        return 0
    fi
    not_ok "$name" "$*"
    log_tail
    return 1
}

says() { # NAME TEXT: the last command printed it
    if grep -qF -- "$2" "$log"; then ok "$1"; else
        not_ok "$1" "it does not say '$2'"
        log_tail
    fi
}

# All files, and what dpkg knows of; not what apt and dpkg keep for themselves.
snapshot() {
    (cd "$root" && find . -xdev \
        \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./packages \
        -o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt \) \
        -prune -o -print) | grep -v '^\./var/lib/dpkg/[^/]*-old$' |
        LC_ALL=C sort
    # shellcheck disable=SC2016 # dpkg-query's own
    chroot "$root" dpkg-query -W -f '${Package} ${Status} ${Version}\n'
}

nothing_left() { # NAME BEFORE
    snapshot >"$work/now"
    if difference=$(diff "$2" "$work/now"); then ok "$1"; else
        not_ok "$1" "there is a difference"
        printf '%s\n' "$difference" | head -n 20 | sed 's/^/    /'
    fi
}

# bare_system [PACKAGE,...]: makes it, with these packages besides. Sets $work,
# $root and $log, and removes all of it when the script ends.
bare_system() {
    work=$(mktemp -d "${TMPDIR:-/tmp}/opscope-bare-XXXXXX") || exit 1
    root=$work/root
    log=$work/log
    trap bare_leave EXIT
    trap 'exit 1' HUP INT TERM
    # shellcheck disable=SC1091 # of the machine
    here=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-bookworm}")
    release=${RELEASE:-$here}
    if [ -z "${MIRROR-}" ]; then
        # shellcheck disable=SC2016 # apt's own
        MIRROR=$(apt-get indextargets --format \
            '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Identifier: Packages' |
            awk -v r="$here" '$1 == r && $2 == "main" { print $3; exit }')
    fi
    proxy=
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    if [ -n "$proxy" ]; then
        http_proxy=$proxy
        export http_proxy
    fi
    if debootstrap --variant=minbase ${1:+"--include=$1"} "$release" "$root" \
        "${MIRROR:-http://deb.debian.org/debian}" >"$log" 2>&1 &&
        mount -t proc proc "$root/proc" &&
        mkdir -p "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm"; then
        ok "a bare system ($release)"
        return 0
    fi
    not_ok "a bare system" "it could not be made"
    log_tail
    exit 1
}
