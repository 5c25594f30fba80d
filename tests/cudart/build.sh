#!/bin/sh
# `build.sh BUILD`: BUILD/libcudart.so.13, over BUILD/libptxsim.so. Needs the headers of the toolkit whose
# nvcc is on the PATH.
nvcc=$(command -v nvcc) || { echo "no nvcc on the PATH" >&2; exit 1; }
include=$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include
flags="-std=gnu11 -Wall -Wextra -Wno-deprecated-declarations -O2 -fPIC -I$include"
objects="$1/cudart_per_thread.o"
${CC:-cc} $flags -DPER_THREAD -c tests/cudart/streamed.c -o "$1/cudart_per_thread.o" || exit 1
${CC:-cc} $flags -shared -pthread tests/cudart/*.c $objects -o "$1/libcudart.so.13" \
    -Wl,-soname,libcudart.so.13 -Wl,--default-symver -L"$1" -l:libptxsim.so -Wl,-rpath,'$ORIGIN' -Wl,-z,defs
