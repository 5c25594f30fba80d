#!/bin/sh
# What a header promises to the program that it is copied into: it compiles everywhere without a warning,
# exports only its prefix, keeps no mutable data, and gives the same text from every compiler.
#   sh tests/dropin.sh         from the repository's root; the last line is "N passed, N failed, N skipped"
passed=0 failed=0 skipped=0
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
root=$t/src # a copy: an editor that saves meanwhile is no failure
mkdir "$root"
strict="-Wall -Wextra -pedantic -Wconversion -Wshadow -Wcast-qual -Werror"
strict_c="$strict -Wmissing-prototypes -Wstrict-prototypes"

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "failed: $1"
}
skip() {
    skipped=$((skipped + 1))
    echo "skip: $1"
}
has() { command -v "$1" >/dev/null 2>&1; }

headers=
for h in ptxgen.h ptxgen_kernels.h ptxgen_cuda.h; do
    if cp "$h" "$root/" 2>/dev/null; then headers="$headers $h"; else skip "there is no $h"; fi
done
[ -n "$headers" ] || bad "no header here: run this from the repository's root"

# -- sources: each header alone and all together; implementation, static copy, plain include --
here="extern int ptx_here; int ptx_here;"
sets=
for h in $headers; do
    n=$(basename "$h" .h)
    sets="$sets $n"
    echo "#include \"$root/$h\"" >"$t/$n.inc"
done
for h in $headers; do echo "#include \"$root/$h\""; done >"$t/together.inc"
sets="$sets together"
case $headers in *kernels.h*cuda.h*) # ptxgen_cuda.h may come before ptxgen_kernels.h
    echo "#include \"$root/ptxgen_cuda.h\"" >"$t/cuda_first.inc"
    echo "#include \"$root/ptxgen_kernels.h\"" >>"$t/cuda_first.inc"
    echo "typedef char ptx_order[sizeof(ptxcu_norm_desc)];" >>"$t/cuda_first.inc"
    sets="$sets cuda_first"
    ;;
esac
for n in $sets; do
    for e in c cpp; do
        { echo "#define PTXGEN_IMPLEMENTATION"; cat "$t/$n.inc"; } >"$t/$n-on.$e"
        { echo "#define PTXGEN_STATIC"; cat "$t/$n-on.$e"; echo "$here"; } >"$t/$n-static.$e"
        { cat "$t/$n.inc"; echo "$here"; } >"$t/$n-include.$e"
    done
done

# -- no warning: one job a compiler and standard, two at a time. Clang tells all without making code. --
compile() { # compiler, standard, extension, flags
    case $1 in clang*) make=-fsyntax-only ;; *) make=-c ;; esac
    for n in $sets; do
        for mode in on static include; do
            name="$1-$2-$n-$mode"
            if "$1" "-std=$2" $4 $make "$t/$n-$mode.$3" -o "$t/$name.o" >"$t/$name.log" 2>&1; then
                echo pass
            else
                echo "fail $1 -std=$2: $n, $mode"
                head -n 8 "$t/$name.log" | cut -c1-160 | sed 's/^/  /'
            fi
        done
    done >"$t/$1-$2.result"
}
jobs_done() {
    for r in "$t"/*.result; do
        [ -f "$r" ] || continue
        passed=$((passed + $(grep -c '^pass$' "$r")))
        failed=$((failed + $(grep -c '^fail ' "$r")))
        grep -v '^pass$' "$r" | sed 's/^fail /failed: /'
        rm -f "$r"
    done
}
for cc in cc gcc clang; do
    if ! has $cc; then
        skip "$cc is not installed"
        continue
    fi
    [ $cc != cc ] || ! cmp -s "$(command -v cc)" "$(command -v gcc)" || continue
    compile $cc c99 c "$strict_c" &
    one=$!
    compile $cc c11 c "$strict_c" &
    wait $one $!
done
for cxx in g++ clang++; do
    if ! has $cxx; then
        skip "$cxx is not installed"
        continue
    fi
    compile $cxx c++11 cpp "$strict" &
    one=$!
    compile $cxx c++20 cpp "$strict" &
    wait $one $!
done
win=x86_64-w64-mingw32-gcc
if has $win; then compile $win c99 c "$strict_c"; else skip "$win is not installed"; fi
jobs_done

# -- each operation alone, and all but it: no unused function, none that is missing --
for op in $(sed -n 's/^#define PTXK_OP_\([A-Z_]*\) 0x.*/\1/p' ptxgen_kernels.h); do
    for choice in "-DPTXK_ONLY=PTXK_OP_$op" "-DPTXK_NO=PTXK_OP_$op"; do
        for c in "gcc -std=c99 -O0 $strict_c -c $t/together-on.c" \
            "clang++ -std=c++11 -fsyntax-only $strict $t/together-on.cpp"; do
            has "${c%% *}" || continue
            if $c "$choice" -o "$t/choice.o" >"$t/choice.log" 2>&1; then
                ok
            else
                bad "${c%% *} $choice"
                head -n 4 "$t/choice.log" | cut -c1-160 | sed 's/^/  /'
            fi
        done
    done
done

# -- behind the headers of a platform: they compile, and no identifier is one of its macros --
meant='^_|^NOMINMAX$|^WIN32_LEAN_AND_MEAN$' # reserved names, and what the headers themselves set for Windows
for h in $headers; do # what is for Windows alone calls its API; comments go by the preprocessor, texts by sed
    awk '/^#if/ {depth++}
        /^#ifdef _WIN32/ && !windows {windows = depth}
        /^#else/ && windows == depth {windows = 0}
        /^#endif/ {if (windows == depth) windows = 0; depth--}
        !windows' "$root/$h" >"$t/portable.h"
    cc -fpreprocessed -dD -E -P "$t/portable.h" 2>/dev/null \
        | sed -e 's/\\\\//g' -e 's/\\"//g' -e "s/'\"'//g" -e 's/"[^"]*"//g'
done | tr -c 'A-Za-z0-9_' '\n' | grep '^[A-Za-z]' | sort -u >"$t/identifiers"
macros() { # compiler ...: the names that the file on the standard input makes macros
    "$@" -dM -E - 2>/dev/null | sed -n 's/^#define \([A-Za-z_][A-Za-z0-9_]*\).*/\1/p' | grep -vE "$meant" \
        | sort -u
}
standard="assert.h ctype.h errno.h float.h limits.h math.h stdarg.h stddef.h stdint.h stdio.h stdlib.h"
standard="$standard string.h time.h"
includes() { for i in "$@"; do echo "#include <$i>"; done; }
no_macro() { # platform, file of its macros
    taken=$(comm -12 "$t/identifiers" "$2" | tr '\n' ' ')
    if [ -z "$taken" ]; then ok; else bad "identifiers that are macros of $1: $taken"; fi
}
behind() { # platform, C compiler, C++ compiler, its headers ...
    platform=$1 cc_of=$2 cxx_of=$3
    shift 3
    includes "$@" >"$t/first.h"
    if ! has "$cc_of" || ! "$cc_of" -E "$t/first.h" >/dev/null 2>&1; then
        skip "$platform: $cc_of, or some of $*, is not installed"
        return
    fi
    includes $standard | macros "$cc_of" >"$t/standard-macros"
    macros "$cc_of" <"$t/first.h" | comm -23 - "$t/standard-macros" >"$t/first-macros"
    no_macro "$platform" "$t/first-macros"
    for e in c cpp; do
        { echo "#include \"$t/first.h\""; cat "$t/together-on.$e"; } >"$t/behind.$e"
    done
    for c in "$cc_of -std=c99 $strict_c -c $t/behind.c" "$cxx_of -std=c++11 $strict -c $t/behind.cpp"; do
        has "${c%% *}" || { skip "$platform: ${c%% *} is not installed"; continue; }
        if $c -o "$t/behind.o" >"$t/behind.log" 2>&1; then
            ok
        else
            bad "$platform first: ${c%% -W*}"
            head -n 8 "$t/behind.log" | cut -c1-160 | sed 's/^/  /'
        fi
    done
}
# Some of what the Windows SDK and X11 define, for where neither is installed; mingw-w64 lacks the first line.
printf '%s\n' min max pascal cdecl PASCAL CDECL STRICT IGNORE NOERROR \
    near far NEAR FAR small hyper interface IN OUT OPTIONAL CONST VOID TRUE FALSE ERROR DELETE DUPLICATE \
    DIFFERENCE ALTERNATE OPAQUE TRANSPARENT RELATIVE ABSOLUTE THIS CALLBACK WINAPI chx1 cmb1 ctl1 edt1 frm1 \
    grp1 ico1 lst1 psh1 rad1 rct1 scr1 stc1 None Bool Status True False Success Always Above Below Complex \
    Convex Unsorted \
    | sort -u >"$t/known-macros"
no_macro "the Windows SDK or X11" "$t/known-macros"
behind Windows $win x86_64-w64-mingw32-g++ winsock2.h ws2tcpip.h windows.h d3d11.h dxgi.h shlobj.h commdlg.h \
    commctrl.h mmsystem.h dlgs.h GL/gl.h
behind "X11 and OpenGL" cc c++ X11/X.h X11/Xlib.h X11/Xutil.h X11/Xatom.h GL/gl.h GL/glx.h

# -- names and data: position-dependent code, so that constant tables of pointers are constant --
for cc in gcc clang; do
    has $cc && has nm || continue
    for n in $sets; do
        $cc -std=c99 -O1 -fno-pie -c "$t/$n-on.c" -o "$t/names.o" 2>/dev/null || { bad "$cc: $n"; continue; }
        nm -g --defined-only "$t/names.o" | awk '{print $NF}' | sort >"$t/names"
        [ $n != together ] || cp "$t/names" "$t/names-together"
        if [ $n = cuda_first ]; then
            if cmp -s "$t/names" "$t/names-together"; then ok; else bad "$cc: $n exports other names"; fi
        fi
        foreign=$(grep -Ev '^(ptx|ptxk|ptxcu)_[a-z0-9]' "$t/names" | tr '\n' ' ')
        if [ -z "$foreign" ]; then ok; else bad "$n exports other names: $foreign"; fi
        private=$(grep -E '^(ptx|ptxk|ptxcu)__' "$t/names" | tr '\n' ' ')
        if [ -z "$private" ]; then ok; else bad "$n exports private names: $private"; fi
        mutable=$(nm "$t/names.o" | awk '$2 ~ /^[DdBbCcGgSs]$/ {print $3}' | tr '\n' ' ')
        if [ -z "$mutable" ]; then ok; else bad "$n, $cc: mutable data: $mutable"; fi
        $cc -std=c99 -c "$t/$n-include.c" -o "$t/names.o" 2>/dev/null
        extra=$(nm "$t/names.o" | awk '{print $NF}' | grep -v '^ptx_here$' | tr '\n' ' ')
        if [ -z "$extra" ]; then ok; else bad "$n, included plainly, makes: $extra"; fi
    done
done

# -- the same text from every compiler, and from a machine of 32 bits, whose registers of floats are wider --
texts() { # name, compiler ...: of all kernels, to $t/NAME-SM.ptx; fails where there is no such compiler
    name=$1
    shift
    echo 'int main(void) { return 0; }' >"$t/none.c"
    has "$1" && "$@" "$t/none.c" -o "$t/none" 2>/dev/null || { skip "$*: is not installed"; return 1; }
    "$@" -std=c99 examples/ptxdump.c -o "$t/dump-$name" -ldl -lm 2>"$t/dump.log" \
        || { bad "$* examples/ptxdump.c: $(head -n 3 "$t/dump.log")"; return 1; }
    for sm in 75 80 90 90a 100a 120; do "$t/dump-$name" --all $sm >"$t/$name-$sm.ptx" 2>/dev/null; done
    return 0
}
alike() { # name, compiler ...: against the text of cc
    texts "$@" || return
    for sm in 75 80 90 90a 100a 120; do
        if [ -s "$t/cc-$sm.ptx" ] && cmp -s "$t/cc-$sm.ptx" "$t/$name-$sm.ptx"; then
            ok
        else
            bad "ptxdump --all $sm: the text of $* is another than that of cc, or there is none"
            cmp "$t/cc-$sm.ptx" "$t/$name-$sm.ptx" | sed 's/^/  /'
        fi
    done
}
if texts cc cc -O1; then
    alike gcc gcc -O1
    alike clang clang -O1
    alike tcc tcc
    alike m32 gcc -m32 -O1
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
