#!/bin/sh
# One handle of ptxgen_cuda.h used by several threads, under the thread sanitizer: `threads.sh DRIVER`, from
# the repository's root. The driver is not instrumented, so what is reported is the header's. The last line is
# "N passed, N failed"; where there is no thread sanitizer, it says so.
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
cc=${CC:-cc}
echo 'int main(void) { return 0; }' >"$t/empty.c"
if ! $cc -fsanitize=thread "$t/empty.c" -o "$t/empty" 2>/dev/null || ! "$t/empty" 2>/dev/null; then
    echo "skip: $cc has no thread sanitizer that works here"
    echo "0 passed, 0 failed"
    exit 0
fi
if grep -q __asan_init "$1"; then
    echo "skip: the driver is built with the address sanitizer, which does not go with the thread sanitizer"
    echo "0 passed, 0 failed"
    exit 0
fi
$cc -std=c99 -O1 -g -fsanitize=thread tests/cuda/tensor.c -o "$t/test" -ldl -lm -pthread || exit 1
PTXSIM_QUIET=1 TSAN_OPTIONS="exitcode=66 $TSAN_OPTIONS" "$t/test" "$1" threads
