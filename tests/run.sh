#!/bin/sh
# One test program or script, or the sum of all that have run:
#   run.sh one DRIVER BUILD NAME COMMAND ...    runs it and keeps its figures in BUILD/results/NAME
#   run.sh sum BUILD NAME ...                   the closing line "N passed, N failed" of these
# DRIVER is the CPU driver's library, or the word gpu for the machine's own. A test's last line is
# "N passed, N failed"; one that crashes, or says nothing, has failed.
mode=$1
if [ "$mode" = sum ]; then
    build=$2
    shift 2
    passed=0 failed=0
    for name in "$@"; do
        read -r p f <"$build/results/$name" || { p=0 f=1; echo "$name: did not run"; }
        passed=$((passed + p)) failed=$((failed + f))
    done
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
fi

driver=$2 build=$3 name=$4
shift 4
export PTXSIM_QUIET=1
export PTXSIM_PERTURB="${PTXSIM_PERTURB-1}" # approximate instructions err as much as they may
if [ "$driver" = gpu ]; then unset PTXGEN_CUDA_LIBRARY; else export PTXGEN_CUDA_LIBRARY="$driver"; fi
result=$build/results/$name
mkdir -p "$(dirname "$result")"
start=$(date +%s)
"$@" >"$result.log" 2>&1
status=$?
line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$result.log" | tail -n 1)
p=$(echo "$line" | sed -n 's/^\([0-9]*\) passed.*/\1/p')
f=$(echo "$line" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
if [ -z "$p" ] || { [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; }; then
    p=${p:-0}
    f=$((${f:-0} + 1))
fi
{
    if [ "$f" -ne 0 ]; then cat "$result.log"; else grep -iE '^(skip|seed|note)' "$result.log"; fi
    echo "$name: $p passed, $f failed ($(($(date +%s) - start)) s)"
} >"$result.shown"
cat "$result.shown"
echo "$p $f" >"$result"
