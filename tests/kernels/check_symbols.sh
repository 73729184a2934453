#!/bin/bash
# check_symbols.sh NM OBJECT... - no symbol is shared between builds of the kernels for different instruction sets.
#
# The linker keeps one copy of a weak symbol. Were one defined by two instruction sets, a CPU might run code of the
# better one. So whatever an object of one instruction set defines for others has rondo_<isa> in its name, and it
# refers to nothing but that and a few functions of the C library (and of sanitizers, in such builds).
nm=$1
shift
checked=0
failed=0
for object in "$@"; do
    isa=$(basename "$object" | sed -nE 's/^(entry|spans_[a-z0-9]+)_([a-z0-9]+)\.cc\.o$/\2/p')
    [ -n "$isa" ] || continue
    checked=$((checked + 1))
    bad=$("$nm" "$object" | awk -v own="rondo_$isa" '
        { kind = $(NF - 1); name = $NF }
        kind ~ /^[a-tv-z]$/ && kind !~ /^[uvw]$/ { next }     # local
        index(name, own) { next }
        kind ~ /^[UvwV]$/ && name ~ /^(memcpy|memmove|memset|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__(asan|ubsan|tsan|sanitizer)_.*)$/ { next }
        { print kind, name }')
    if [ -n "$bad" ]; then
        echo "$object:"
        echo "$bad"
        failed=1
    fi
done
if [ $checked -eq 0 ]; then
    echo "no object of the kernels among the arguments"
    exit 1
fi
echo "$checked objects checked"
exit $failed
