#!/bin/sh
# What the header costs to compile, in seconds of the processor, and its code: `compile.sh BUILD`.
# BENCH_COMPILE=0 leaves it out. Beside each figure stands what is promised on a quiet machine.
[ "$BENCH_COMPILE" = 0 ] && exit 0
build=$1
cc=${CC:-cc}
o=$build/compile.o
mkdir -p "$build"
echo '#define PTXGEN_IMPLEMENTATION
#include "ptxgen.h"' >"$build/compile.c"
echo '#include "ptxgen.h"
int x;' >"$build/include.c"

seconds() { # of the children of a subshell: user + system
    (
        "$@" >/dev/null 2>&1
        times
    ) | tail -n 1 | sed 's/[ms]/ /g' | awk '{ printf "%.2f", 60 * $1 + $2 + 60 * $3 + $4 }'
}
least() { # of three runs
    for i in 1 2 3; do seconds "$@"; echo; done | sort -n | head -n 1
}
gate() { # what, the figure, the most it may be
    awk -v what="$1" -v figure="$2" -v most="$3" 'BEGIN {
        printf "  gate: %-46s %8s  at most %s  %s\n", what, figure, most,
               figure + 0 <= most + 0 ? "held" : "MISSED" }'
}
echo "compiling ptxgen.h, $($cc --version | head -n 1)"
gate "implementation, -O2, s" "$(least $cc -std=c99 -I. -O2 -c "$build/compile.c" -o "$o")" 2
gate "code and constants, bytes" "$(size "$o" 2>/dev/null | awk 'NR == 2 { print $1 }')" 400000
gate "implementation, -O0, s" "$(least $cc -std=c99 -I. -O0 -c "$build/compile.c" -o "$o")" 0.5
gate "include only, s" "$(least $cc -std=c99 -I. -c "$build/include.c" -o "$o")" 0.04
