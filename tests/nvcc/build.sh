#!/bin/sh
# Compiles tests/nvcc/*.cu to PTX in every mode that the tests run: `tests/nvcc/build.sh [nvcc]`. The result is
# committed (tests/nvcc/ptx.tar.gz); `make test` needs no nvcc. Run it again when a .cu file has changed.
set -eu
cd "$(dirname "$0")"
nvcc=${1:-nvcc}
rm -rf ptx
mkdir ptx
compile() { # file, mode, architecture, flags ...
    out=ptx/$1.$2.$3.ptx
    f=$1 a=$3
    shift 3
    echo "$out"
    "$nvcc" -ptx -std=c++17 -arch="compute_$a" "$@" "$f.cu" -o "$out"
    sed -i "s|\"$(pwd)/|\"|" "$out"                           # paths of this machine are nobody's business
}
for f in *.cu; do
    f=${f%.cu}
    if [ "$f" = pipelines ]; then # wgmma is of this architecture only
        compile "$f" O3 90a -O3
        continue
    fi
    if [ "$f" = accuracy ]; then # one mode says it all
        compile "$f" O3 90a -O3
        continue
    fi
    for a in 80 90a 100; do compile "$f" O3 $a -O3; done
    compile "$f" G 90a -G
    compile "$f" fast 90a --use_fast_math
done
tar --sort=name --owner=0 --group=0 --mtime=2000-01-01 -cf - ptx | gzip -9n >ptx.tar.gz
rm -rf ptx
