#!/bin/sh
# Run every test program and add up their closing lines: `run.sh DRIVER BUILD`. DRIVER is the CPU driver's
# library, or the word gpu for the machine's own. The last line is "N passed, N failed"; the exit status says
# whether anything failed.
driver=$1
build=$2
passed=0
failed=0
log=$build/test.log

one() { # name, command ...
    name=$1
    shift
    start=$(date +%s)
    "$@" >"$log" 2>&1
    status=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
    p=$(echo "$line" | sed -n 's/^\([0-9]*\) passed.*/\1/p')
    f=$(echo "$line" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
    # A program that crashed, or that says nothing, has failed whatever it counted.
    if [ -z "$p" ] || { [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; }; then
        p=${p:-0}
        f=$((${f:-0} + 1))
    fi
    passed=$((passed + p))
    failed=$((failed + f))
    if [ "$f" -ne 0 ]; then cat "$log"; else grep -iE '^(skip|seed|note)' "$log"; fi
    echo "$name: $p passed, $f failed ($(($(date +%s) - start)) s)"
}

export PTXSIM_QUIET=1
export PTXSIM_PERTURB="${PTXSIM_PERTURB-1}" # approximate instructions err as much as they may
if [ "$driver" = gpu ]; then
    unset PTXGEN_CUDA_LIBRARY
else
    export PTXGEN_CUDA_LIBRARY="$driver"
    for source in tests/test_sim_*.c; do
        name=$(basename "$source" .c)
        one "CPU driver, $name" "$build/$name" "$driver"
    done
    one "drop-in" sh tests/dropin.sh
    one "threads" sh tests/threads.sh "$driver"
fi
one "examples" sh tests/examples.sh "$build"
for source in tests/test_*.c; do
    name=$(basename "$source" .c)
    case $name in test_sim_*) continue ;; esac
    one "$(echo "${name#test_}" | tr _ ' ')" "$build/$name"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
