/* SPDX-License-Identifier: Apache-2.0
 * The names of facts and stats that opscope writes itself (the recorder,
 * `opscope record`) and that its importer and analyses look for. XSpace's own
 * are in base/xspace.h; docs/recorder/format.md says what each means. */
#ifndef BASE_FACTS_H
#define BASE_FACTS_H

/* Facts of a recording. */
#define FACT_VERSION       "opscope_version"
#define FACT_VIEW          "opscope_view" /* seen from outside: "processes" */
#define FACT_UNCLOSED      "opscope_unclosed"
#define FACT_LOSS          "opscope_loss"
#define FACT_DROPPED       "dropped_traces"
#define FACT_SCALARS_LOST  "scalars_lost"
#define FACT_UNRECORDED    "unrecorded_processes"
#define FACT_PROCESS_ID    "process_id"
#define FACT_FAMILY        "family"
#define FACT_HOST_NAME     "host_name"
#define FACT_RANK          "rank"
#define FACT_WORLD_SIZE    "world_size"
#define FACT_START_UNIX_NS "start_unix_ns"
#define FACT_SCOPE_COST_PS "scope_cost_ps"
#define FACT_CPU_ALLOWED   "cpu_allowed"
#define FACT_ARGV          "argv"

/* What a step takes without the profiler, microseconds, as whoever took the
 * profile measured it in the same run. A tool that records writes it: a stat of
 * XSpace's host or task plane, or a key of Kineto's JSON beside its events. */
#define FACT_BARE_STEP_US "opscope_bare_step_us"
/* If it is the median of many: how many, and what one in ten is below and
 * above, microseconds. */
#define FACT_BARE_STEPS   "opscope_bare_steps"
#define FACT_BARE_LOW_US  "opscope_bare_low_us"
#define FACT_BARE_HIGH_US "opscope_bare_high_us"
/* If it is a mean instead, since the program runs ahead of its device: of how
 * many stretches of steps it is the middle one; the least and the most are the
 * range. */
#define FACT_BARE_LAPS "opscope_bare_laps"

/* The name of the span, of opscope's own recording, over which a framework's
 * tracer ran begins so. */
#define SPAN_TRACED_BY "opscope: traced by "
/* The names of two others of it: a stretch of steps between two moments at
 * which the device had nothing to do, and the wait for the second of these. */
#define SPAN_LAP      "opscope: steps from an idle device to an idle device"
#define SPAN_LAP_WAIT "opscope: waits for the device"
/* Instants that tell of the latest step which began before: it is none, as
 * behind a program's last one; it was over so many nanoseconds ago, and what
 * came since was the program's end; it was cut, and nobody knows where it
 * ended. */
#define SPAN_NO_STEP   "opscope: no step begins here"
#define SPAN_STEP_OVER "opscope: the step was over, ns ago: "
#define SPAN_STEP_CUT  "opscope: the step is cut"
/* An instant: steps before it turned out to be none of the program's. */
#define SPAN_ANEW "opscope: steps are counted anew"

/* The name of a span of a framework's trace that lists, in its argument, the
 * Python frames of opscope's own hooks as that trace spells them. */
#define SPAN_OWN_FRAMES "opscope: frames of its own"
#define OWN_FRAMES_ARG  "frames"

/* The name of the span, of opscope's own recording, in which a program waited
 * for its loader. */
#define SPAN_INPUT_WAIT "input: waits for a batch"

/* Why the recorder lost something: of a thread's calls (the stat "why"), and of
 * others (FACT_LOSS, behind a number). */
#define LOSS_RING_FULL    "the thread's ring was full"
#define LOSS_NO_MEMORY    "the memory for rings was full"
#define LOSS_IN_SIGNAL    "called from a signal handler"
#define LOSS_TOO_DEEP     "scopes nested too deep"
#define LOSS_ARGS         "arguments that did not fit"
#define LOSS_UNMATCHED    "ops_end() without a begin"
#define LOSS_WRITE        "samples and device events that could not be written"
#define LOSS_NO_RING      "calls of threads that got no ring"
#define LOSS_NAMES        "uses of names beyond the limit"
#define LOSS_NAMES_MEMORY "uses of names for which there was no memory"
#define LOSS_SCALARS      "scalars that could not be written"
#define LOSS_REFUSED                                                           \
    "times that a process of the program got no memory for rings"
#define LOSS_PROCESSES "processes of the program that could not be recorded"

/* Stats of the recorder's events. */
#define FACT_STEP_NUM      "step_num"
#define FACT_COUNTER_VALUE "counter_value"
#define FACT_KIND          "opscope_kind"
#define FACT_UNFINISHED    "unfinished"

/* What `opscope record` saw of the whole program. */
#define FACT_RUN_NS        "run_ns"
#define FACT_CPUS          "cpus"
#define FACT_CPU_US        "cpu_us"
#define FACT_UNSEEN_CPU_US "unseen_cpu_us"

/* What `opscope record` saw of one process or thread. */
#define FACT_PID              "pid"
#define FACT_PPID             "ppid"
#define FACT_CPU_NS           "cpu_ns"
#define FACT_USER_NS          "user_ns"
#define FACT_SYS_NS           "sys_ns"
#define FACT_CPU_WAIT_NS      "cpu_wait_ns"
#define FACT_SWITCHES         "switches"
#define FACT_PEAK_RSS_BYTES   "peak_rss_bytes"
#define FACT_PAGE_FAULTS      "page_faults"
#define FACT_MAJOR_FAULTS     "major_faults"
#define FACT_DISK_READ_BYTES  "disk_read_bytes"
#define FACT_DISK_WRITE_BYTES "disk_write_bytes"
#define FACT_THREADS          "threads"
#define FACT_EXACT            "exact"
#define FACT_EXIT_STATUS      "exit_status"
#define FACT_SIGNAL           "signal"

/* Counters of the recorder that an analysis asks for. */
#define COUNTER_CPU         "CPU: process (% of one core)"
#define COUNTER_THREADS     "CPU: threads (count)"
#define COUNTER_INVOLUNTARY "context switches: involuntary (per s)"

#endif
