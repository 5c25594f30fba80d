#!/bin/sh
# What the headers cost to compile, as ratios to stb_image.h (Debian: libstb-dev) taken in turns in one run,
# and how large their code is: `compile.sh BUILD`. BENCH_COMPILE=0 leaves it out. Times are of the processor,
# the least of three rounds.
[ "$BENCH_COMPILE" = 0 ] && exit 0
t=$1/compile
mkdir -p "$t"
stb=
for folder in /usr/include/stb /usr/include /usr/local/include/stb /usr/local/include; do
    [ -z "$stb" ] && [ -f "$folder/stb_image.h" ] && stb=$folder/stb_image.h
done
printf '#define STB_IMAGE_IMPLEMENTATION\n#include "%s"\n' "$stb" >"$t/stb.c"
printf '#define PTXGEN_IMPLEMENTATION\n#include "ptxgen.h"\n' >"$t/builder.c"
printf '#define PTXGEN_IMPLEMENTATION\n#include "ptxgen.h"\n#include "ptxgen_kernels.h"\n#include "ptxgen_cuda.h"\n' \
    >"$t/all.c"
printf '#include "ptxgen.h"\nint x;\n' >"$t/include.c"

seconds() { # of the processor, for the command
    (
        "$@" >/dev/null 2>&1
        times
    ) | tail -n 1 | sed 's/[ms]/ /g' | awk '{ printf "%.2f\n", 60 * $1 + $2 + 60 * $3 + $4 }'
}
gate() { # what, the figure, the most it may be
    awk -v what="$1" -v figure="$2" -v most="$3" 'BEGIN {
        printf "  gate: %-52s %8s  at most %s  %s\n", what, figure, most,
               figure + 0 <= most + 0 ? "held" : "MISSED" }'
}
ratios() { # compiler, flag, limit for ptxgen.h, limit for all three
    command -v "$1" >/dev/null 2>&1 || { echo "  skip: $1 is not installed"; return; }
    for n in stb builder all; do : >"$t/$n.times"; done
    for round in 1 2 3; do
        for n in stb builder all; do
            seconds "$1" -std=c99 -I. "$2" -c "$t/$n.c" -o "$t/$n.o" >>"$t/$n.times"
        done
    done
    for n in stb builder all; do
        eval "${n}_least=$(sort -n "$t/$n.times" | head -n 1)"
    done
    echo "$1 $2: stb_image.h $stb_least s, ptxgen.h $builder_least s, all three $all_least s"
    gate "ptxgen.h / stb_image.h" "$(awk "BEGIN { printf \"%.2f\", $builder_least / $stb_least }")" "$3"
    gate "the three headers / stb_image.h" "$(awk "BEGIN { printf \"%.2f\", $all_least / $stb_least }")" "$4"
}
if [ -n "$stb" ]; then
    ratios gcc -O2 1.4 4.5
    if command -v gcc >/dev/null 2>&1; then
        echo "  with PTXGEN_NO_O1: ptxgen.h $(seconds gcc -std=c99 -I. -O2 -DPTXGEN_NO_O1 -c "$t/builder.c" \
            -o "$t/builder.o") s, all three $(seconds gcc -std=c99 -I. -O2 -DPTXGEN_NO_O1 -c "$t/all.c" \
            -o "$t/all.o") s"
    fi
    ratios clang -O2 1.5 4.5
    ratios gcc -O0 2.5 9
else
    echo "  skip: there is no stb_image.h to compare with (Debian: libstb-dev)"
fi
cc=${CC:-cc}
gate "include only, s" "$(seconds "$cc" -std=c99 -I. -c "$t/include.c" -o "$t/include.o")" 0.04
for n in builder all; do
    "$cc" -std=c99 -I. -O2 -c "$t/$n.c" -o "$t/$n.o" || exit 1
done
gate "ptxgen.h: code and constants, bytes" "$(size "$t/builder.o" | awk 'NR == 2 { print $1 }')" 165000
"$cc" -std=c99 -I. -O0 -DPTXGEN_NO_MATH -c "$t/all.c" -o "$t/all_no_math.o" || exit 1
"$cc" -std=c99 -I. -O2 -DPTXGEN_NO_MATH -c "$t/builder.c" -o "$t/no_math.o" || exit 1
gate "the same without mathematics, bytes" "$(size "$t/no_math.o" | awk 'NR == 2 { print $1 }')" 165000
echo "  of these, unwinding tables that the compiler adds (.eh_frame): $(size -A "$t/no_math.o" |
    awk '$1 == ".eh_frame" { print $2 }') bytes"
gate "ptxgen.h: tables, bytes" "$(size "$t/builder.o" | awk 'NR == 2 { print $2 }')" 30000
gate "ptxgen.h: lines" "$(wc -l <ptxgen.h)" 7500
gate "the three headers: code and constants, bytes" "$(size "$t/all.o" | awk 'NR == 2 { print $1 }')" 520000

# What a program compiles that leaves operations out (PTXK_ONLY, PTXK_NO): the last figures with ptxgen_cuda.h.
attention="PTXK_OP_FLASH_DECODE | PTXK_OP_FLASH_PREFILL | PTXK_OP_KV_SCATTER"
printf '#define PTXGEN_IMPLEMENTATION\n#include "ptxgen_kernels.h"\n' >"$t/kernels.c"
choice() { # name, flag
    for n in kernels all; do
        eval "${n}_time=$(seconds "$cc" -std=c99 -I. -O2 "$2" -c "$t/$n.c" -o "$t/$n.o")"
        eval "${n}_bytes=$(size "$t/$n.o" | awk 'NR == 2 { print $1 + $2 }')"
    done
    awk -v what="$1" -v a="$kernels_time" -v b="$all_time" -v stb="${stb_time:-0}" -v m="$kernels_bytes" \
        -v n="$all_bytes" 'function ratio(s) { return stb > 0 ? sprintf("%5.2f", s / stb) : "    -" }
        BEGIN { printf "  %-18s %6.2f s %s %8d bytes, %6.2f s %s %8d bytes\n", what, a, ratio(a), m, b, ratio(b), n }'
}
[ -z "$stb" ] || stb_time=$(seconds "$cc" -std=c99 -O2 -c "$t/stb.c" -o "$t/stb.o")
echo "ptxgen_kernels.h with what it includes, then with ptxgen_cuda.h: $cc -O2, the ratio to stb_image.h, bytes"
choice "all operations" -DPTXK_NO=0
choice "all but decoder" -DPTXK_NO=PTXK_OP_DECODER
choice "attention" "-DPTXK_ONLY=($attention)"
choice "gemm" -DPTXK_ONLY=PTXK_OP_GEMM
choice "norm" -DPTXK_ONLY=PTXK_OP_NORM
