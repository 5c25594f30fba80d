#!/bin/sh
# Compiles an example by the command of its first lines: compile.sh SOURCE PROGRAM FLAGS, FLAGS in the place of -O2.
name=$(basename "${1%.*}")
command=$(sed -n 's/^ *\(c[c+][c+]* .*\)$/\1/p' "$1" | head -n 1 | sed "s|-o $name |-o $2 |; s|-O2|$3|")
case $command in
*" $1 "*"-o $2 "*) ;;
*)
    echo "$1: its first lines lack the command that compiles it: $command"
    exit 1
    ;;
esac
echo "$command"
exec sh -c "$command"
