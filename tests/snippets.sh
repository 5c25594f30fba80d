#!/bin/sh
# Every snippet of the manuals, of the README and of docs/ compiles without a warning, as C and as C++, and those that
# build a kernel build it.
#   sh tests/snippets.sh       from the repository's root; the last line is "N passed, N failed, N skipped"
# A snippet is a paragraph of a header's first comment whose lines all begin with seven blanks or more, a
# block ```c of README.md and docs/*.md, or a call in the manual's text, such as ptx_at(p, 16). What surrounds it in a
# program is `context` below, by file and number: a snippet without one fails.
passed=0 failed=0 skipped=0
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
strict="-Wall -Wextra -pedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wmissing-prototypes"
strict="$strict -Wmissing-field-initializers -Werror"
strict_cxx="-Wall -Wextra -pedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wold-style-cast"
strict_cxx="$strict_cxx -Wmissing-field-initializers -Werror"

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "failed: $1"
}
skip() {
    skipped=$((skipped + 1))
    echo "skip: $1"
}

# The function's head, and what follows the snippet in it. shown() checks the text, and counts.
context() {
    case $1 in
    ptxgen.h-1 | README.md-1) head='(void)' tail='shown(m, text);' run='()' ;;
    ptxgen_kernels.h-1)
        head='(uint32_t rows)' tail='shown(m, text);' run='(100)'
        ;;
    ptxgen_cuda.h-1) head='(ptx_module *m, const float *host_x, float *host_y)' tail='return 0;' run= ;;
    operations.md-1)
        head='(ptx_plan plan, ptxk_matmul_args args, uint32_t launch, void **given, encode_fn cuTensorMapEncodeTiled)'
        tail='memcpy(given, params, n * sizeof *given); return NULL;' run=
        ;;
    mathematics.md-1)
        head='(ptx_kernel *k, ptx_val x, const ptx_val point[3], ptx_val seed)' tail='(void)shade;' run=
        ;;
    ptxgen_cuda.h-2) head='(ptxcu *cu, ptxcu_stream stream)' tail= run= ;;
    *) return 1 ;;
    esac
}

# Paragraphs of code of file $1, each to $t/FILE-N.
extract() {
    case $1 in
    *.md) awk -v out="$t/${1##*/}-" '
        /^```c$/ {n++; on = 1; next}
        /^```/ {on = 0}
        on && !/^#/ {print > (out n)}' "$1" ;;
    *) sed -n '1,/^\*\//p' "$1" | awk -v out="$t/$1-" '
        function flush() {
            if (code && text != "") { n++; printf "%s", text > (out n) }
            text = ""; code = 1
        }
        BEGIN { code = 1 }
        /^ *$/ { flush(); next }
        { text = text $0 "\n"; if ($0 !~ /^       /) code = 0 }' ;;
    esac
}

# Calls in the manual's text of header $1, one a line; not those with ... or without arguments.
calls() {
    sed -n '/^ *\[MANUAL\] *$/,/^\*\//p' "$1" | awk '{text = text " " $0} END {
        while (match(text, /ptx[a-z]*_[a-z0-9_]*\(/)) {
            rest = substr(text, RSTART)
            for (i = RLENGTH; i <= length(rest); i++) {
                c = substr(rest, i, 1)
                depth += c == "("
                if (c == ")" && --depth == 0) break
            }
            call = substr(rest, 1, i)
            gsub(/ +/, " ", call)
            text = substr(text, RSTART + RLENGTH)
            if (depth == 0 && call !~ /\.\.\./ && call !~ /\(\)$/ && !seen[call]++) print "    " call ";"
            depth = 0
        }
    }'
}

for f in ptxgen.h ptxgen_kernels.h ptxgen_cuda.h README.md docs/*.md; do extract "$f"; done
{
    echo '#include <stdio.h>'
    for h in ptxgen.h ptxgen_kernels.h ptxgen_cuda.h; do echo "#include \"$PWD/$h\""; done
    echo 'int failures(void);
static int failed_texts;
int failures(void) { return failed_texts; }
void shown(ptx_module *m, const char *text);
void shown(ptx_module *m, const char *text) {
    if (!text) {
        failed_texts++;
        puts(ptx_get_error(m)->message);
    }
    ptx_module_free(m);
}
typedef struct CUtensorMap {
    uint64_t opaque[16];
} CUtensorMap;
typedef int (*encode_fn)(CUtensorMap *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                         const uint32_t *, int, int, int, int);'
} >"$t/all.c"
echo 'int main(void) {' >"$t/main.c"
for s in "$t"/*.h-* "$t"/*.md-*; do
    [ -f "$s" ] || continue
    name=$(basename "$s")
    case $name in wgmma.md-*) # parts of the example
        if awk 'NR == FNR {want = want $0 "\n"; next} {all = all $0 "\n"} END {exit !index(all, want)}' \
            "$s" examples/wgmma.c; then
            ok
        else
            bad "$name is no part of examples/wgmma.c: $(head -n 1 "$s")"
        fi
        continue
        ;;
    esac
    if ! context "$name"; then
        bad "$name has no context in tests/snippets.sh: $(head -n 1 "$s")"
        continue
    fi
    function=snippet_$(echo "$name" | tr -c 'a-zA-Z0-9\n' '_')
    type=void
    [ "$tail" = 'return 0;' ] && type=int
    case $tail in *'return NULL;') type='const char *' ;; esac
    { echo "$type $function$head;
$type $function$head {"; cat "$s"; echo "    $tail"; echo '}'; } >>"$t/all.c"
    [ -n "$run" ] && echo "    $function$run;" >>"$t/main.c"
    ok
done
{
    echo 'typedef struct particle { float position, mass; } particle;
void calls_in_the_manual(ptx_kernel *k, uint32_t n, const ptx_val *args, ptx_var v, const ptx_val *of);
void calls_in_the_manual(ptx_kernel *k, uint32_t n, const ptx_val *args, ptx_var v, const ptx_val *of) {
    const ptx_val a = of[0], b = of[1], x = of[2], p = of[3], i = of[4], address = of[5], bar = of[6],
                  first = of[7], limit = of[8], step = of[9], index = of[10], all = of[11], init = of[12];
    const ptx_val y = of[13];
    const uint64_t bits = 7;'
    calls ptxgen.h
    echo '}
uint64_t modifiers(void);
uint64_t modifiers(void) {
    return 0'
    sed -n 's/^#define \(PTX_[A-Z0-9_]*\) PTX__[AM]([0-9]*).*/        | \1/p' ptxgen.h
    echo '        | PTX_SM(90) | PTX_SM_A(90) | PTX_SM_F(100);
}
uint64_t targets(unsigned number, int other, size_t large);
uint64_t targets(unsigned number, int other, size_t large) {
    return PTX_SM(number) | PTX_SM_A(other) | PTX_SM_F(large);
}
unsigned forms(void);
unsigned forms(void) {
#define FORM(id, ...) +1u
    return 0 PTX_TABLE(FORM, FORM);
}'
} >>"$t/all.c"
cp "$t/all.c" "$t/all.cpp"

count=$(($(calls ptxgen.h | wc -l)))
[ "$count" -gt 20 ] && ok || bad "$count calls are found in the manual's text"
try() { # compiler, standard, file, flags
    command -v "$1" >/dev/null 2>&1 || { skip "$1 is not installed"; return; }
    if "$1" "-std=$2" $4 -c "$3" -o "$t/try.o" >"$t/log" 2>&1; then
        ok
    else
        bad "snippets, $1 -std=$2:"
        head -n 20 "$t/log" | sed 's/^/  /'
    fi
}
for cc in gcc clang; do try $cc c99 "$t/all.c" "$strict -Wstrict-prototypes"; done
for cxx in g++ clang++; do try $cxx c++11 "$t/all.cpp" "$strict_cxx"; done
try g++ c++11 "$t/all.cpp" "$strict_cxx -Wuseless-cast" # which clang++ does not know
# The implementation, too; all compilers and standards: dropin.sh.
for h in ptxgen ptxgen_kernels ptxgen_cuda; do echo "#include \"$PWD/$h.h\""; done >"$t/whole.cpp"
try g++ c++20 "$t/whole.cpp" \
    "-DPTXGEN_IMPLEMENTATION -fsyntax-only -Wall -Wextra -pedantic -Wconversion -Wshadow -Wcast-qual -Werror"

# What builds a kernel does.
echo '    mistake();
    return failures() != 0; }' >>"$t/main.c"
cat >>"$t/all.c" <<'END'
void mistake(void);
void mistake(void) { /* the one that README.md shows */
    ptx_module *m = ptx_module_new(NULL);
    ptx_kernel *k = ptx_entry(m, "scale");
    ptx_val x = ptx_param_ptr(k, "x", PTX_GLOBAL), a = ptx_param(k, "a", PTX_F32), n = ptx_param(k, "n", PTX_U32);
    ptx_val i = ptx_global_x(k);
    ptx_if(k, ptx_setp(k, PTX_LT, i, n));
    ptx_st_elem(k, PTX_F32, x, i, ptx_mul(k, a, n));
    ptx_end(k);
    ptx_ret(k);
    printf("mistake: %s\n", strstr(ptx_get_error(m)->message, "error: "));
    ptx_module_free(m);
}
END
{ echo '#define PTXGEN_IMPLEMENTATION'; cat "$t/all.c" "$t/main.c"; } >"$t/run.c"
if cc -std=c99 -O0 "$t/run.c" -o "$t/run" -ldl -pthread >"$t/log" 2>&1 && "$t/run" >>"$t/log" 2>&1; then
    ok
    mistake=$(sed -n 's/^mistake: //p' "$t/log")
    if [ -n "$mistake" ] && tr '\n' ' ' <README.md | grep -qF -- "$mistake"; then
        ok
    else
        bad "README.md shows another message than: $mistake"
    fi
else
    bad "the snippets' kernels:"
    head -n 20 "$t/log" | sed 's/^/  /'
fi
# Every operation has its place on the page of the operations.
operations=$(sed -n '/^#define PTXK_OPERATIONS/,/^$/p' ptxgen_kernels.h | grep -o 'X([a-z_]*)' | tr -d 'X()')
for operation in $operations; do
    if grep -q "^| \[\`$operation\`\](#" docs/operations.md; then ok; else bad "docs/operations.md lacks $operation"; fi
done
# What the pages link to is there.
for page in README.md CONTRIBUTING.md CHANGELOG.md docs/*.md; do
    folder=$(dirname "$page")
    for link in $(tr '\n' ' ' <"$page" | grep -o '](\([^)#]*\)[^)]*)' | sed 's/^](//; s/#.*//; s/)$//' | sort -u); do
        case $link in http*) continue ;; esac
        if [ -e "$folder/$link" ]; then ok; else bad "$page links to $link, which is not there"; fi
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
