#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pages.sh PAGE.md: sections of a document as C, for `opscope help TOPIC`. One
# begins below a line `<!-- help: TOPIC -->` and ends before the next; its text
# is called help_TOPIC, with _ for -. A block of code loses its fences and is
# indented; headings, what is emphasised, and tables lose their marks.
set -eu
printf '/* Made by tools/pages.sh from %s. */\n#include "cmd/help.h"\n' "$1"
awk '
    function quoted(s) {
        gsub(/\\/, "&&", s) # each awk reads "\\" its own way
        gsub(/"/, "\\\"", s)
        return "    \"" s "\\n\"\n"
    }
    function flush_page() { if (name != "") printf ";\n" }
    /^<!-- help: [a-z-]+ -->$/ {
        flush_page()
        name = $3
        gsub(/-/, "_", name)
        printf "\nconst char help_%s[] =\n", name
        next
    }
    name == "" { next }
    /^```/ { code = !code; next }
    code { printf "%s", quoted($0 == "" ? "" : "    " $0); next }
    /^\|[-|]*$/ { next }
    /^\|/ { sub(/^\| /, ""); while (sub(/ *\|$/, "")) { } gsub(/ \| /, "  ") }
    {
        sub(/^## /, "")
        gsub(/\*\*/, "")
        printf "%s", quoted($0)
    }
    END { flush_page() }
' "$1"
