#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Advice is for whoever reads it: no words of another framework, and under a
# table only what matters to it.

OPSCOPE=${OPSCOPE:-build/opscope}

every() { # every analysis on a path, with all that -v shows
    local path=$1
    for a in $("$OPSCOPE" help | awk '/^Analyses/{on=1;next} /^$/{on=0} on && /^  [a-z]/{print $1}'); do
        "$OPSCOPE" "$a" "$path" -v --top 5 2>/dev/null
    done
}

words() { # the sentences of advice: below tables, and what coverage says
    every "$1" | awk '/^not recorded:/{on=1} /^(note|$)/{on=0} on; /^    fix /'
}

@test "audience: nobody is told to use another framework" {
    run words tests/data/tf_keras/vm.xplane.pb
    [ -n "$output" ]
    [[ $output != *with_stack* && $output != *torch.* && $output != *jax.* ]]
    [[ $output != *opscope/record.h* ]]
    run words tests/data/jax_mlp/vm.xplane.pb
    [ -n "$output" ]
    [[ $output != *with_stack* && $output != *torch.* && $output != *tf.p* ]]
    run words tests/data/torch_cpu/torch_cpu.pt.trace.json.gz
    [ -n "$output" ]
    [[ $output != *jax* && $output != *tf.* && $output != *tracer_level* ]]
    [[ $output != *opscope/record.h* ]]
}

@test "audience: a table of a run on the CPU is not followed by advice to buy a GPU" {
    for f in tests/data/tf_keras/vm.xplane.pb tests/data/jax_cpu/vm.xplane.pb \
             tests/data/torch_cpu/torch_cpu.pt.trace.json.gz; do
        for a in overview steps ops tree input critical hints; do
            run "$OPSCOPE" "$a" "$f"
            [ "$status" -eq 0 ]
            [[ $output != *"not recorded:"* ]] || { echo "$a $f"; false; }
        done
        # nothing is lost by that: scripts have all of it, and so has -v
        run "$OPSCOPE" ops "$f" --format json
        [[ $output == *'"what": "device time"'* ]]
        run "$OPSCOPE" ops "$f" -v
        [[ $output == *"not recorded: device time"* ]]
        # where the device is the question, it is said
        run "$OPSCOPE" kernels "$f"
        [[ $output == *"not recorded: device time"* ]]
    done
}

@test "audience: a program in Python is not told to include a header" {
    dir=$(mktemp -d "$BATS_TEST_TMPDIR/audience.XXXXXX")
    echo 'print(sum(range(1000)))' > "$dir/train.py"
    run "$OPSCOPE" record -o "$dir/logs" -- python3 "$dir/train.py"
    [ "$status" -eq 0 ]
    for a in overview steps memory; do
        run "$OPSCOPE" "$a" "$dir/logs" --width 0
        [[ $output != *"record.h"* && $output == *"opscope record looks into"* ]]
    done
    rm -r "$dir"
}

@test "audience: a trace whose kernels are missing says so on the first screen" {
    dir=$(mktemp -d "$BATS_TEST_TMPDIR/audience.XXXXXX")
    zcat tests/data/torch_cnn/torch_cnn.pt.trace.json.gz | python3 -c '
import json, sys
d = json.load(sys.stdin)
d["traceEvents"] = [e for e in d["traceEvents"] if e.get("cat") not in
                    ("kernel", "gpu_memcpy", "gpu_memset", "ac2g")]
json.dump(d, sys.stdout)' > "$dir/cut.pt.trace.json"
    run "$OPSCOPE" overview "$dir/cut.pt.trace.json" --width 0
    [[ $output == *"calls launched device work, of which nothing is"* ]]
    run "$OPSCOPE" steps "$dir/cut.pt.trace.json" --width 0
    [[ $output == *"compute is the ops of the host, not what"* ]]
    rm -r "$dir"
}
