#!/bin/sh
# What a packager and a user of an installed copy rely on: one version everywhere, make install, pkg-config, CMake.
#   sh tests/packaging.sh      from the repository's root; the last line is "N passed, N failed, N skipped"
passed=0 failed=0 skipped=0
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT

check() { # name, command ...
    name=$1
    shift
    if "$@" >"$t/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $name"
        head -n 20 "$t/log" | sed 's/^/  /'
    fi
}
skip() {
    skipped=$((skipped + 1))
    echo "skip: $1"
}
has() { command -v "$1" >/dev/null 2>&1; }

# -- the version --
number() { sed -n "s/^#define PTX_VERSION_$1 \([0-9]*\).*/\1/p" ptxgen.h; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
for h in ptxgen.h ptxgen_kernels.h ptxgen_cuda.h; do
    check "the first line of $h says $version" grep -q "^/\* $h - v$version - " "$h"
done
check "CHANGELOG.md begins with $version" \
    test "$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)" = "$version"
cat >"$t/version.c" <<'END'
#include <stdio.h>
#include "ptxgen.h"
int main(void) {
    int same = PTX_VERSION_NUMBER == PTX_VERSION_MAJOR * 10000 + PTX_VERSION_MINOR * 100 + PTX_VERSION_PATCH;
    printf("%s\n", PTXGEN_VERSION);
    return !same;
}
END
check "PTX_VERSION_NUMBER is made of the three" sh -c "cc -I. '$t/version.c' -o '$t/version' && '$t/version' >'$t/says'"
check "PTXGEN_VERSION is $version" test "$(cat "$t/says" 2>/dev/null)" = "$version"
mkdir "$t/mixed"
cp ptxgen.h ptxgen_kernels.h ptxgen_cuda.h "$t/mixed"
sed -i.old 's/^#define PTX_VERSION_PATCH .*/#define PTX_VERSION_PATCH 99/' "$t/mixed/ptxgen.h"
for h in ptxgen_kernels.h ptxgen_cuda.h; do
    echo "#include \"$t/mixed/$h\"" >"$t/mixed.c"
    check "$h refuses a ptxgen.h of another version" \
        sh -c "! cc -c '$t/mixed.c' -o '$t/mixed.o' 2>'$t/says' && grep -q 'same version' '$t/says'"
done

# -- a program that uses an installed copy: it prints a kernel --
cat >"$t/user.c" <<'END'
#include <stdio.h>
#define PTXGEN_IMPLEMENTATION
#include <ptxgen.h>
#include <ptxgen_cuda.h>
int main(void) {
    ptxcu *cu = NULL;
    ptx_module *m = ptx_module_new(NULL);
    ptx_ret(ptx_entry(m, "nothing"));
    puts(ptx_text(m, NULL));
    ptxcu_open(&cu, NULL);
    ptxcu_close(cu);
    ptx_module_free(m);
    return 0;
}
END
works() { "$1" | grep -q "visible .entry nothing"; }

check "make install" make install "PREFIX=/opt/ptxgen" "DESTDIR=$t/root" B="$t/build"
for f in include/ptxgen.h include/ptxgen_kernels.h include/ptxgen_cuda.h share/pkgconfig/ptxgen.pc \
    share/cmake/ptxgen/ptxgen-config.cmake share/cmake/ptxgen/ptxgen-config-version.cmake; do
    check "make install: $f" test -f "$t/root/opt/ptxgen/$f"
done
check "make install without DESTDIR" make install "PREFIX=$t/usr" B="$t/build"
if has pkg-config; then
    export PKG_CONFIG_PATH="$t/usr/share/pkgconfig"
    check "pkg-config: the version" test "$(pkg-config --modversion ptxgen)" = "$version"
    check "pkg-config: a program" \
        sh -c "cc -O0 '$t/user.c' -o '$t/user' \$(pkg-config --cflags --libs ptxgen)"
    check "pkg-config: the program runs" works "$t/user"
    check "make install to a folder with blanks and &" make install "PREFIX=$t/a & b" B="$t/build"
    check "pkg-config: that folder" sh -c "PKG_CONFIG_PATH='$t/a & b/share/pkgconfig' && export PKG_CONFIG_PATH &&
        eval cc -O0 '$t/user.c' -o '$t/user2' \"\$(pkg-config --cflags --libs ptxgen)\""
else
    skip "pkg-config is not installed"
fi

project() { # folder, what finds the target
    mkdir "$t/$1"
    cp "$t/user.c" "$t/$1/"
    {
        echo 'cmake_minimum_required(VERSION 3.14)'
        echo 'project(user C)'
        echo "$2"
        echo 'add_executable(user user.c)'
        echo 'target_link_libraries(user PRIVATE ptxgen::ptxgen)'
    } >"$t/$1/CMakeLists.txt"
    check "CMake, $1: configures" cmake -S "$t/$1" -B "$t/$1/build" "-DCMAKE_PREFIX_PATH=$3"
    check "CMake, $1: builds" cmake --build "$t/$1/build"
    check "CMake, $1: runs" works "$t/$1/build/user"
}
if has cmake; then
    project installed "find_package(ptxgen $(number MAJOR).$(number MINOR) REQUIRED)" "$t/usr"
    project subdirectory "add_subdirectory($PWD ptxgen)" ""
    check "cmake --install" sh -c "cmake -S . -B '$t/own' && cmake --install '$t/own' --prefix '$t/cmake'"
    for f in include share; do
        check "both installations have the same files in $f, but for pkg-config's" \
            diff -r -x pkgconfig "$t/usr/$f" "$t/cmake/$f"
    done
    echo "find_package(ptxgen 99.0 REQUIRED)" >"$t/installed/CMakeLists.txt"
    check "CMake refuses a version that there is not" \
        sh -c "! cmake -S '$t/installed' -B '$t/refused' '-DCMAKE_PREFIX_PATH=$t/usr'"
else
    skip "cmake is not installed"
fi
check "make uninstall leaves nothing" \
    sh -c "make uninstall 'PREFIX=$t/usr' B='$t/build' && test -z \"\$(find '$t/usr' -type f)\""

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
