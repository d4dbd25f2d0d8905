#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [--quick] [--only WORDS]: builds, grows the files, measures, prints a
# table and rewrites docs/performance.md (not with --quick or --only).
# run.sh --beside BUILD [...]: by turns with another build, see beside.py.
#   OPSCOPE_BENCH_DIR        where grown files are kept (build/bench/files)
#   OPSCOPE_BENCH_TORCH_BIG  a PyTorch trace of about 172 MB (or its .gz)
set -eu
cd "$(dirname "$0")/../.."
: "${B:=build}"
make -s -j2 -f tests/bench/bench.mk B="$B" bench-programs
python=python3
[ -x /usr/bin/python3 ] && python=/usr/bin/python3
if [ "${1-}" = --beside ]; then
    before=$2
    shift 2
    exec "$python" tests/bench/beside.py "$before" "$B" "$@"
fi
exec "$python" tests/bench/run.py --build "$B" "$@"
