#!/usr/bin/env bash
# command.sh RONDO PAGE - what the rondo command says, and its exit statuses. PAGE is docs/variables.md.
set -uo pipefail
rondo=$1 page=$2 failed=0

check() { # WHAT STATUS-EXPECTED TEXT-EXPECTED COMMAND...
    local what=$1 status=$2 text=$3 got rc
    shift 3
    got=$("$@" 2>&1)
    rc=$?
    if [[ $rc != "$status" || $got != *"$text"* ]]; then
        printf '%s: status %s instead of %s, and "%s" instead of "...%s..."\n' "$what" "$rc" "$status" "$got" "$text"
        failed=1
    fi
}

clean() { env -i "$@"; }

check "the version" 0 "interface 2.30.7: " clean "$rondo" version
check "the library" 0 "libnccl.so.2" clean "$rondo" version
check "help" 0 "usage: rondo variables" clean "$rondo" help
check "nothing" 2 "usage:" clean "$rondo"
check "no command" 2 "usage:" clean "$rondo" frobnicate
check "too much" 2 "usage:" clean "$rondo" version now
check "unset" 0 $'RONDO_CPU_DEVICES\n    8 unless set, 1 to 1024; ' clean "$rondo" variables RONDO_CPU_DEVICES
check "set" 0 $'RONDO_CPU_DEVICES=4\n' clean RONDO_CPU_DEVICES=4 "$rondo" variables RONDO_CPU_DEVICES
check "text" 0 $'NCCL_SOCKET_IFNAME==lo\n    text; ' clean NCCL_SOCKET_IFNAME==lo "$rondo" variables NCCL_SOCKET_IF
check "out of range" 1 "RONDO_CPU_DEVICES=0   IGNORED" clean RONDO_CPU_DEVICES=0 "$rondo" variables
check "no number" 1 "NCCL_BUFFSIZE=4M   IGNORED" clean NCCL_BUFFSIZE=4M "$rondo" variables
check "misspelt" 0 $'NCCL_BUFSIZE=1\n    not read' clean NCCL_BUFSIZE=1 "$rondo" variables
for name in $(grep -o '^| `[A-Z0-9_]*`' "$page" | tr -d '|` '); do
    check "$name" 0 "$name" clean "$rondo" variables "$name"
done
exit $failed
