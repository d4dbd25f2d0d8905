#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# describe.sh FILE: prints a file by which other builds find a library of ours,
# for pkg-config (NAME.pc) or for CMake (NAMEConfig.cmake and
# NAMEConfigVersion.cmake), where NAME is opscope or opscope-record.
#
# The Makefile says where things are: PREFIX, EXEC_PREFIX, LIBDIR, INCLUDEDIR and
# CMAKEDIR, all absolute, VERSION, and in LIBS what a program needs beside the
# static library. What is printed for CMake names no place but relative to
# itself: the installed tree may be moved. So may that of pkg-config, by
# --define-prefix, as far as the folders lie below PREFIX.
# shellcheck disable=SC2016,SC2153 # ${...} is for the reader; see above
set -eu

file=${1:?which file?}
case $file in
opscope.pc | opscopeConfig*.cmake)
    name=opscope
    target=opscope
    what="reads profiles of deep-learning programs"
    ;;
opscope-record.pc | opscope-recordConfig*.cmake)
    name=opscope-record
    target=record
    what="records what a program does"
    ;;
*)
    printf 'describe.sh: there is no %s\n' "$file" >&2
    exit 1
    ;;
esac

for folder in "$LIBDIR" "$INCLUDEDIR" "$CMAKEDIR"; do
    case $folder in
    /*) ;;
    *)
        printf 'describe.sh: not an absolute path: %s\n' "$folder" >&2
        exit 1
        ;;
    esac
done

# below PATH FOLDER NAME: PATH by the variable NAME, where it lies in FOLDER.
below() {
    case $1 in
    "$2") printf '${%s}' "$3" ;;
    "$2"/*) printf '${%s}%s' "$3" "${1#"$2"}" ;;
    *) printf '%s' "$1" ;;
    esac
}

# way FROM TO: the way from one absolute folder to another.
way() {
    from=$1
    up=.
    while :; do
        case $2/ in
        "$from"/*) break ;;
        esac
        from=${from%/*}
        up=$up/..
    done
    printf '%s%s' "$up" "${2#"$from"}"
}

pkgconfig() {
    exec_prefix=$(below "$EXEC_PREFIX" "$PREFIX" prefix)
    case $LIBDIR in
    "$EXEC_PREFIX"/*) libdir=$(below "$LIBDIR" "$EXEC_PREFIX" exec_prefix) ;;
    *) libdir=$(below "$LIBDIR" "$PREFIX" prefix) ;;
    esac
    # Where the loader does not look by itself, the program says where.
    case $LIBDIR in
    /lib* | /usr/lib* | /usr/local/lib*) rpath= ;;
    *) rpath=' -Wl,-rpath,${libdir}' ;;
    esac
    cat <<END
prefix=$PREFIX
exec_prefix=$exec_prefix
libdir=$libdir
includedir=$(below "$INCLUDEDIR" "$PREFIX" prefix)

Name: $name
Description: $what
Version: $VERSION
Cflags: -I\${includedir}
Libs: -L\${libdir}$rpath -l$name
Libs.private: $LIBS
END
}

# The folder is taken by its real name: where /lib is a link to /usr/lib, the
# way from there to the headers is another.
cmake_config() {
    here=$CMAKEDIR/$name
    libs=$(printf '%s' "$LIBS" | tr -s ' ' ';')
    cat <<END
# $name $VERSION: $what.
#   opscope::$target         the shared library
#   opscope::$target-static  the static one, with what it needs
get_filename_component(_opscope_here "\${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_opscope_lib
    "\${_opscope_here}/$(way "$here" "$LIBDIR")" ABSOLUTE)
get_filename_component(_opscope_include
    "\${_opscope_here}/$(way "$here" "$INCLUDEDIR")" ABSOLUTE)

foreach(_opscope_file
    "\${_opscope_lib}/lib$name.so" "\${_opscope_lib}/lib$name.a"
    "\${_opscope_include}/opscope/$target.h")
  if(NOT EXISTS "\${_opscope_file}")
    set(\${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
    set(\${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE
        "\${_opscope_file} is missing")
    return()
  endif()
endforeach()

if(NOT TARGET opscope::$target)
  add_library(opscope::$target SHARED IMPORTED)
  set_target_properties(opscope::$target PROPERTIES
      IMPORTED_LOCATION "\${_opscope_lib}/lib$name.so"
      IMPORTED_SONAME "lib$name.so.${VERSION%%.*}"
      INTERFACE_INCLUDE_DIRECTORIES "\${_opscope_include}")
  add_library(opscope::$target-static STATIC IMPORTED)
  set_target_properties(opscope::$target-static PROPERTIES
      IMPORTED_LOCATION "\${_opscope_lib}/lib$name.a"
      IMPORTED_LINK_INTERFACE_LANGUAGES C
      INTERFACE_INCLUDE_DIRECTORIES "\${_opscope_include}"
      INTERFACE_LINK_LIBRARIES "$libs")
endif()

unset(_opscope_here)
unset(_opscope_lib)
unset(_opscope_include)
unset(_opscope_file)
END
}

# The same first number is the same interface (it is the library's, too), and
# of those any that is not older will do.
cmake_version() {
    major=${VERSION%%.*}
    cat <<END
set(PACKAGE_VERSION "$VERSION")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)
if(PACKAGE_FIND_VERSION_RANGE)
  if(PACKAGE_FIND_VERSION_MIN_MAJOR EQUAL $major
     AND PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION_MIN
     AND ((PACKAGE_FIND_VERSION_RANGE_MAX STREQUAL "INCLUDE"
           AND PACKAGE_VERSION VERSION_LESS_EQUAL PACKAGE_FIND_VERSION_MAX)
          OR (PACKAGE_FIND_VERSION_RANGE_MAX STREQUAL "EXCLUDE"
              AND PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION_MAX)))
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
elseif("\${PACKAGE_FIND_VERSION}" STREQUAL "")
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
elseif(PACKAGE_FIND_VERSION_MAJOR EQUAL $major
       AND PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
# There is no build for 32 bits.
if(NOT "\${CMAKE_SIZEOF_VOID_P}" STREQUAL ""
   AND NOT "\${CMAKE_SIZEOF_VOID_P}" EQUAL 8)
  set(PACKAGE_VERSION "$VERSION (64 bits)")
  set(PACKAGE_VERSION_UNSUITABLE TRUE)
endif()
END
}

case $file in
*.pc) pkgconfig ;;
*ConfigVersion.cmake) cmake_version ;;
*) cmake_config ;;
esac
