#!/bin/sh
# How the sources are laid out: sections of the headers, width of lines.
#   sh tests/layout.sh         from the repository's root; the last line is "N passed, N failed"
passed=0 failed=0
headers="ptxgen.h ptxgen_kernels.h ptxgen_cuda.h"

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "failed: $1"
}

# -- the same sections in the same order, in the index and in the file; ptxgen.h alone has mathematics --
for h in $headers; do
    tags="MANUAL CONFIG ERRORS TYPES TABLE INTERFACE SUPPORT CORE LICENSE"
    if [ "$h" = ptxgen.h ]; then tags="${tags% *} MATH LICENSE"; fi
    index=$(sed -n '1,/^\*\//p' "$h" | sed -n '/^ *INDEX/,/\[LICENSE\]/p' \
        | sed -n 's/^ *\[\([A-Z]*\)\].*/\1/p' | tr '\n' ' ' | sed 's/ $//')
    if [ "$index" = "$tags" ]; then ok; else bad "$h: the INDEX has: $index"; fi
    # A head is "/* ---- [TAG] ---"; the manual's is in the first comment, behind the index.
    heads=$(awk '/^ *INDEX/ {index_on = 1} index_on && /\[LICENSE\]/ {index_on = 0; behind = 1; next}
        behind && /^ *\[MANUAL\] *$/ {print "MANUAL"}
        /^\/\* -+ \[[A-Z]+\]/ {s = $0; sub(/^[^[]*\[/, "", s); sub(/\].*/, "", s); print s}' "$h" \
        | tr '\n' ' ' | sed 's/ $//')
    if [ "$heads" = "$tags" ]; then ok; else bad "$h: the sections are: $heads"; fi
done

# -- no logical line over 16,000 characters: some preprocessors take no more --
for h in $headers; do
    longest=$(awk '{ n += length($0); if (/\\$/) n--; else { if (n > most) { most = n; at = FNR }; n = 0 } }
        END { print most + 0, "characters, the one that ends in line", at }' "$h")
    if [ "${longest%% *}" -le 16000 ]; then ok; else bad "$h: a logical line has $longest"; fi
done

# -- lines: at most 110 columns where users read, 120 in the tests --
long=$(for f in *.h examples/*.[ch] examples/*.[ch]pp tests/*.[ch] tests/*.sh tests/*/*.sh tests/*/*.[ch] \
    tests/*/*.inc tests/*/*.def; do
    case $f in tests/*) most=120 ;; *) most=110 ;; esac
    awk -v f="$f" -v most=$most 'length($0) > most {print "  " f ":" FNR ": " length($0) " columns"}' "$f"
done)
if [ -z "$long" ]; then
    ok
else
    bad "lines over 110 columns, 120 in the tests: $(echo "$long" | wc -l)"
    echo "$long" | head -n 20
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
