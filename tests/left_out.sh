#!/bin/sh
# PTXK_ONLY and PTXK_NO: each operation compiles alone without a warning; a program with one operation links, gives
# the text that the whole implementation gives, refuses the others, and holds no code of them.
#   sh tests/left_out.sh BUILD   from the repository's root; the last line is "N passed, N failed, N skipped"
build=$1
passed=0 failed=0 skipped=0
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
cc=${CC:-cc}
strict="-std=c99 -Wall -Wextra -pedantic -Wconversion -Wshadow -Wcast-qual -Wmissing-prototypes -Werror"

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "failed: $1"
    [ ! -s "$t/log" ] || head -n 8 "$t/log" | cut -c1-160 | sed 's/^/  /'
    : >"$t/log"
}

# The bits and the registry name the same operations.
bits=$(sed -n 's/^#define PTXK_OP_\([A-Z_]*\) 0x.*/\1/p' ptxgen_kernels.h)
names=$(sed -n '/^#define PTXK_OPERATIONS(X)/,/[^\\]$/p' ptxgen_kernels.h | grep -o 'X([a-z_]*)' \
    | tr 'a-z' 'A-Z' | sed 's/X(\(.*\))/\1/' | grep -v '^X$')
if [ -n "$bits" ] && [ "$bits" = "$names" ]; then ok; else bad "PTXK_OP_... and PTXK_OPERATIONS differ"; fi

# gcc tells unused functions only where it makes code: clang, where there is one, reads faster.
printf '#define PTXGEN_IMPLEMENTATION\n#include "ptxgen_kernels.h"\n#include "ptxgen_cuda.h"\n' >"$t/all.c"
reader="clang -fsyntax-only"
command -v clang >/dev/null 2>&1 || reader="$cc -fsyntax-only"
for op in $bits; do
    if $reader $strict -I. "-DPTXK_ONLY=PTXK_OP_$op" "$t/all.c" >"$t/log" 2>&1; then ok; else bad "$op alone"; fi
done
if $cc $strict -O0 -I. -DPTXGEN_STATIC -DPTXK_ONLY=PTXK_OP_NORM -c "$t/all.c" -o "$t/all.o" >"$t/log" 2>&1; then
    ok
else
    bad "norm alone, static"
fi

cat >"$t/norm.c" <<'END'
#include "ptxgen_kernels.h"
#include "ptxgen_cuda.h"
#include <stdio.h>
int main(void) {
    ptxk_norm_desc desc = PTX_ZERO;
    ptx_module *m = ptx_module_new(NULL);
    uint64_t zeros[64] = PTX_ZERO;
    ptx_code code;
    desc.n = 4096;
    desc.x_type = desc.y_type = desc.weight_type = PTX_F16;
    (void)ptxk_norm_emit(m, &desc);
    puts(ptx_text(m, NULL));
    code = ptxk_operation_find("gemm")->emit(m, "here", zeros);
    fprintf(stderr, "%s: %s\n", ptx_error_name(code), ptx_get_error(m)->message);
#ifdef CALLS
    return ptxk_gemm_plan(NULL, NULL, NULL, NULL) + ptxcu_gemm(NULL, NULL, NULL);
#else
    return 0;
#endif
}
END
{ echo '#define PTXGEN_IMPLEMENTATION'; cat "$t/norm.c"; } >"$t/own.c"
make() { $cc -std=c99 -O0 -I. "$@" -ldl >"$t/log" 2>&1; }
if make "$t/norm.c" "$build/implementation.o" -o "$t/whole" && "$t/whole" >"$t/whole.ptx" 2>/dev/null \
    && make -DPTXK_ONLY=PTXK_OP_NORM -c "$t/own.c" -o "$t/own.o" && make "$t/own.o" -o "$t/own" \
    && "$t/own" >"$t/own.ptx" 2>"$t/said" && grep -q '\.entry' "$t/own.ptx" && cmp "$t/whole.ptx" "$t/own.ptx"; then
    ok
else
    bad "norm alone gives another text, or none"
fi
if grep -q "gemm: PTXK_ONLY or PTXK_NO leaves this operation out" "$t/said"; then
    ok
else
    bad "the registry's gemm, left out, says: $(cat "$t/said")"
fi
if command -v nm >/dev/null 2>&1; then
    any=$(echo $bits | tr 'A-Z ' 'a-z|')
    held=$(nm -g --defined-only "$t/own.o" | awk '{ print $NF }' | grep -E "^(ptxk|ptxcu)_($any)(_|\$)" \
        | grep -v '^ptxk_[a-z_]*_emit_$' | tr '\n' ' ')
    want='ptxcu_norm ptxcu_norm_prepare ptxk_norm_check ptxk_norm_plan '
    if [ "$held" = "$want" ]; then ok; else bad "norm alone holds $held"; fi
else
    skipped=$((skipped + 1))
    echo "skip: nm is not installed"
fi
if make -DCALLS "-DPTXK_ONLY=(PTXK_OP_NORM | PTXK_OP_GEMM)" -DPTXK_NO=PTXK_OP_GEMM "$t/own.c" -o "$t/own"; then
    bad "a call of gemm links where gemm is left out"
elif grep -q ptxk_gemm_plan "$t/log" && grep -q ptxcu_gemm "$t/log"; then
    ok
else
    bad "the linker does not name what gemm's calls lack"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
