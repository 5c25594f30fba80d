#!/bin/sh
# examples/operators.hpp: it compiles without a warning as C++11 and C++20, the kernel is the one that was meant, and
# an error names the line of the operator that caused it.
passed=0 failed=0
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
        head -n 20 "$t/log"
    fi
}
cat >"$t/program.cpp" <<END
#define PTXGEN_IMPLEMENTATION
#include "$PWD/ptxgen.h"
#include "$PWD/examples/operators.hpp"
#include <cstdio>
static void scale(ptx_module *m) {
    px::kernel k(m, "scale");
    px::array<float> x = k.pointer<float>("x");
    px::value a = k.parameter<float>("a"), n = k.parameter<unsigned>("n"), i = k.global_x();
    px::variable sum(k.constant(0.0f));
    px::loop(0, n, [&](px::value j) { sum += x[j]; });
    px::when(i < n, [&] { x[i] = a * x[i] + 1 - sum / 2; });
    x[n] = px::select(a > 0, -a, px::abs(a));
    px::array<float> s = k.shared<float>("s", 64);
    px::loop(k.thread_x(), 64, 32, [&](px::value j) { s[j] = px::sin(x[j]) * px::pow(a, 2); });
    k.barrier();
    sum -= s[0];
    sum /= px::rsqrt(s[1]);
    px::when(!(i < n), [&] { x[i] += sum; });
    k.end();
    std::puts(ptx_text(m, nullptr) ? ptx_text(m, nullptr) : ptx_get_error(m)->message);
}
static void wrong(ptx_module *m, int which) {
    px::kernel k(m, "wrong");
    px::array<float> x = k.pointer<float>("x");
    px::value f = k.parameter<float>("f"), u = k.parameter<unsigned>("u");
    px::variable sum(f);
    ptx_module_free(nullptr);
    if (which == 0)
        f + u;
    if (which == 1) px::when(u,
                             [] {});
    if (which == 2)
        x[f] = f;
    if (which == 3) {
        f * 2;
        sum += u;
    }
    if (which == 4) x[u] = u & 7;
    k.end();
    ptx_text(m, nullptr);
    std::puts(ptx_get_error(m)->message);
}
int main() {
    ptx_module *m = ptx_module_new(nullptr);
    scale(m);
    ptx_module_free(m);
    for (int i = 0; i < 5; i++) {
        m = ptx_module_new(nullptr);
        wrong(m, i);
        ptx_module_free(m);
    }
}
END
for cxx in g++ clang++; do
    command -v $cxx >/dev/null 2>&1 || { echo "skip: there is no $cxx"; continue; }
    for standard in c++11 c++20; do
        check "$cxx $standard" $cxx -std=$standard -O0 -Wall -Wextra -pedantic -Wshadow -Wconversion -Werror \
            -Wno-unused "$t/program.cpp" -o "$t/$cxx"
    done
    "$t/$cxx" >"$t/says" 2>&1
    for words in 'setp.lt.u32' 'mul.f32' 'neg.f32' 'st.shared.f32' 'bar.sync 0' \
        '@!%p' 'program.cpp:29: error: .* operand 2 of add is u32' \
        'program.cpp:30: error: .* a condition is u32' 'program.cpp:33: error: .* an index is' \
        'program.cpp:36: error: .* operand 2 of add is u32' 'program.cpp:38: error: .* operand 2 of st'; do
        check "$cxx: $words" grep -q "$words" "$t/says"
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
