#!/usr/bin/env bash
# output.sh SOURCE - what the scripts show of a configure and a build, and whose failure they pass on. cmake is a function here.
set -euo pipefail
source "$1/scripts/lib.sh"

expect() { # WHAT GOT WANTED
    [[ $2 == "$3" ]] || fail "$1: got"$'\n'"$2"$'\n'"instead of"$'\n'"$3"
}

# The build of 40 steps, the 13th of which warns; with a failure, if told to.
cmake() {
    if [[ $1 == --preset ]]; then
        printf '%s\n' "-- The C compiler is GNU" "-- Rondo 1.2, Release:" "--   tests  on   GoogleTest" "-- Configuring done" "-- Build files"
        echo "CMake Error: as told" >&2
    else
        printf '[0/2] Re-checking globbed directories...\n'
        for ((i = 1; i <= 40; i++)); do
            echo "[$i/40] Building CXX object $i.o"
            ((i != 13)) || echo "13.cc:1:1: [1/2] is no progress: warning"
        done
        [[ $told == 0 ]] || printf '%s\n' "FAILED: 40.o" "40.cc:1:1: error: no" "ninja: build stopped"
    fi
    return "$told"
}

told=0
expect "a build" "$(compile release | tail -n +2)" "   10 %, 20 %, 30 %
13.cc:1:1: [1/2] is no progress: warning
   40 %, 50 %, 60 %, 70 %, 80 %, 90 %, 100 %"
expect "a configure" "$(configure release 2>/dev/null | tail -n +2)" "   Rondo 1.2, Release:
     tests  on   GoogleTest"

told=7
status=0
output=$(compile release) || status=$?
expect "the status of a build that fails" "$status" 7
expect "the end of a build that fails" "$(tail -n 3 <<<"$output")" "FAILED: 40.o
40.cc:1:1: error: no
ninja: build stopped"
status=0
output=$(configure release 2>&1) || status=$?
expect "the status of a configure that fails" "$status" 7
[[ $output == *"CMake Error: as told"* ]] || fail "a configure that fails says nothing: $output"
say "what the scripts show is what it must be"
