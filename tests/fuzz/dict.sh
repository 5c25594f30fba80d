#!/bin/sh
# Prints the dictionary of the fuzzer (ptx.dict) from the driver's own tables: `sh tests/fuzz/dict.sh`.
sim=tests/sim
echo "# Words of PTX for the fuzzer; made by tests/fuzz/dict.sh from the tables of tests/sim."
{
    sed -n 's/^    { "\([a-z0-9_.:]*\)", "[^"]*", "[^"]*".*/\1 /p' $sim/isa.c
    sed -n 's/^    { "\(%[a-z0-9_.]*\)", SR_.*/\1/p' $sim/parse.c
    grep -o '\[T_[A-Z0-9]*\] = { "[a-z0-9]*"' $sim/isa.c | sed 's/.*"\(.*\)"/.\1/'
    sed -n '/^#define SIM_MODIFIERS(X)/,/^$/p' $sim/sim.h | grep -o 'X([A-Za-z0-9_]*)' | sed 's/X(\(.*\))/.\1/'
    grep -o 'X([A-Za-z0-9_]*, "[^"]*")' $sim/sim.h | sed 's/.*"\(.*\)".*/.\1/'
    grep -oE '(directive|dir)\(s, "[a-z0-9_]*"' $sim/parse.c | sed 's/.*"\(.*\)"/.\1/'
    grep -ohE '"(__cuda[A-Za-z0-9_]*|__assert[A-Za-z0-9_]*|vprintf|malloc|free)"' $sim/*.c | tr -d '"'
    printf '%s\n' '@p' '@!p' '{' '}' '[' ']' '(' ')' ';' ', ' '<4>' '0f3f800000' '0d3ff0000000000000' \
        '|' '_' '//' '/*' '*/'
} | sed 's/\\/\\\\/g; s/"/\\"/g' | awk 'length && !seen[$0]++ { print "\"" $0 "\"" }'
