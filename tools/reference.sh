#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reference.sh [PROGRAM]: docs/reference.md, printed from the program's tables.
# A page per analysis, command and topic, as `opscope help NAME` shows it.
set -eu
program=${1:-build/opscope}
COLUMNS=80
LC_ALL=C.UTF-8
export COLUMNS LC_ALL

page() {
    printf '\n## %s\n\n' "$1"
    "$program" help "$1" | sed 's/^./    &/'
}

names() { # of the section that begins with the line $1
    "$program" help | awk -v from="$1" '
        $0 == from { on = 1; next }
        on && /^$/ { exit }
        on && /^  [a-z]/ { print $1 }'
}

cat <<'EOF'
# Reference

Printed from the tables by `make docs`; `opscope help NAME` shows the same.
EOF
for name in $(names 'Analyses:') $(names 'Commands:'); do page "$name"; done
for topic in paths options formats exports notes exit; do page "$topic"; done
