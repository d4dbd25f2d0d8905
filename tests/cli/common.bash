# SPDX-License-Identifier: Apache-2.0
# Waiting and limits that do not depend on how busy the machine is.

# wait_for COMMAND...: until it succeeds; a minute at least, then it has failed.
wait_for() {
    for _ in {1..1200}; do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

# limited SECONDS COMMAND...: so long on a core; much longer on the clock, for
# what would wait for ever.
limited() {
    (
        ulimit -t "$1"
        shift
        exec timeout 600 "$@"
    )
}

# sanitized BUILD: is it one with sanitizers?
sanitized() {
    case ${1##*/} in
    *address* | *thread* | *memory*) return 0 ;;
    esac
    return 1
}

# compilers_of BUILD: sets $cc and $cxx. The static libraries of a build with
# sanitizers need its compiler and its flags; such a build has no shared ones.
compilers_of() {
    case ${1##*/} in
    build-clang*) cc=clang cxx=clang++ ;;
    *) cc=cc cxx=c++ ;;
    esac
    case ${1##*/} in
    *-address-undefined) san=-fsanitize=address,undefined ;;
    *-thread) san=-fsanitize=thread ;;
    *) san= ;;
    esac
    cc="$cc $san" cxx="$cxx $san"
}
