#!/bin/sh
# `build.sh BUILD`: BUILD/libcudart.so.13, over BUILD/libptxsim.so. Needs the headers of the toolkit whose
# nvcc is on the PATH.
nvcc=$(command -v nvcc) || { echo "no nvcc on the PATH" >&2; exit 1; }
include=$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include
${CC:-cc} -std=gnu11 -Wall -Wextra -O2 -fPIC -shared -pthread -I"$include" tests/cudart/cudart.c \
    -o "$1/libcudart.so.13" -Wl,-soname,libcudart.so.13 -Wl,--default-symver -L"$1" -l:libptxsim.so \
    -Wl,-rpath,'$ORIGIN'
