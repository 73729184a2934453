# shellcheck shell=bash
# lib.sh - what the scripts share: finding and installing packages, configuring, building, running tests.
# Sourced; the sourcing script has set -euo pipefail.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Everything a build with tests, perf tests and MPI examples needs on Debian 12.
packages=(cmake ninja-build gcc g++ pkg-config python3 iproute2 libsodium-dev libboost-context-dev libgtest-dev openmpi-bin
    libopenmpi-dev)

say() { printf '== %s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Name the packages that are missing and install them. Does nothing, and needs no network, when all are there.
install_packages() {
    local package missing=() as_root=()

    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
        fail "this is not Debian: install what matches these Debian packages, then use 'cmake --preset release': ${packages[*]}"
    for package in "${packages[@]}"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
    done
    if ((${#missing[@]} == 0)); then
        say "all ${#packages[@]} Debian packages are there"
        return
    fi
    if ((EUID != 0)); then
        command -v sudo >/dev/null ||
            fail "not root and no sudo; as root, run: apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing missing Debian packages: ${missing[*]}"
    as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
    "${as_root[@]}" update || say "apt-get update failed; trying with the package lists that are there"
    "${as_root[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null ||
        fail "apt-get could not install: ${missing[*]}"
}

# The folder of a preset.
build_folder() {
    [[ $1 == release ]] && echo "$root/build" || echo "$root/build-$1"
}

# show_table - of cmake's output the table of features alone. What is wrong cmake tells stderr.
show_table() {
    sed -n '/^-- Rondo /,/^-- Configuring done/ { /^-- Configuring done/ d; s/^-- /   /; p }'
}

# show_progress - ninja's progress in one line, by tenths; every other line as it is: errors and warnings.
show_progress() {
    local line tenth shown=0 total=0 open=

    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
            ((BASH_REMATCH[2] == total)) || shown=0 # the first few steps only look for new files
            total=${BASH_REMATCH[2]}
            tenth=$((total >= 10 ? 10 * BASH_REMATCH[1] / total : 0))
            if ((tenth > shown)); then
                printf '%s%d %%' "${open:-   }" $((10 * tenth))
                shown=$tenth open=', '
            fi
        else
            [[ -z $open ]] || printf '\n'
            open=
            printf '%s\n' "$line"
        fi
    done
    [[ -z $open ]] || printf '\n'
}

# configure PRESET - a folder left by another generator or a moved checkout is started afresh.
configure() {
    local folder fresh=()

    folder=$(build_folder "$1")
    if [[ -f $folder/CMakeCache.txt ]] && ! {
        grep -qx "CMAKE_GENERATOR:INTERNAL=Ninja" "$folder/CMakeCache.txt" &&
            grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"
    }; then
        fresh=(--fresh)
    fi
    say "configuring $1 in $folder"
    (cd "$root" && cmake --preset "$1" "${fresh[@]}") | show_table
}

# compile PRESET [TARGET...] - RONDO_JOBS limits the compilers that run at a time.
compile() {
    local folder targets=()

    folder=$(build_folder "$1")
    shift
    (($# == 0)) || targets=(--target "$@")
    say "building in $folder"
    cmake --build "$folder" --parallel "${RONDO_JOBS:-$(nproc)}" "${targets[@]}" | show_progress
}

# skipped_tests LOG OUTPUT - "test<TAB>reason", a line for each test that said it could not run: GoogleTest's skips and
# programs' lines "SKIPPED: reason" from ctest's log, and from its output those that gave no reason.
skipped_tests() {
    awk '
        /^\[ RUN      \]/              { reason = ""; take = 0 }
        /^\[  SKIPPED \] .*\([0-9]+ ms\)$/ { print $4 "\t" (reason == "" ? "no reason given" : reason); take = 0 }
        take                           { reason = reason (reason == "" ? "" : " ") $0 }
        /: Skipped$/                   { take = 1 }
        /^[0-9]+\/[0-9]+ Testing: /    { name = $3 }
        /^SKIPPED: /                   { print name "\t" substr($0, 10); said[name] = 1 }
        /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .*\*\*\*Skipped / {
            sub(/^.*#[0-9]+: /, "")
            if (!said[$1]) print $1 "\tno reason given"
        }
    ' "$@"
}

# judge_skips LOG OUTPUT - print the skipped tests. With CI=true, one that allowed-skips.txt does not list is a failure:
# on a machine where everything could be installed, "something was missing" would hide what was not tested.
judge_skips() {
    local test reason pattern why bad=0 listed skips

    skips=$(skipped_tests "$@")
    if [[ -z $skips ]]; then
        say "no test was skipped"
        return 0
    fi
    say "skipped tests:"
    while IFS=$'\t' read -r test reason; do
        listed=
        while IFS=$'\t' read -r pattern why; do
            [[ -n $pattern && $pattern != \#* && "$test: $reason" =~ ^$pattern$ ]] && listed=$why
        done <"$root/scripts/allowed-skips.txt"
        printf '   %s: %s%s\n' "$test" "$reason" "${listed:+ (expected: $listed)}"
        if [[ -z $listed && ${CI:-} == true ]]; then
            printf '   ^ not in scripts/allowed-skips.txt, so this is a failure here\n'
            bad=1
        fi
    done <<<"$skips"
    return $bad
}

# run_tests PRESET - the closing line is ctest's, also when skips turn the run into a failure.
run_tests() {
    local folder log status=0 runner=()

    folder=$(build_folder "$1")
    log=$(mktemp)
    # gcc 12's ThreadSanitizer cannot start when the kernel randomises more than 28 bits of addresses.
    if [[ $1 == tsan && $(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28) -gt 28 ]]; then
        runner=(setarch "$(uname -m)" --addr-no-randomize)
    fi
    say "running the tests in $folder"
    "${runner[@]}" ctest --test-dir "$folder" --parallel "$(nproc)" --output-on-failure --no-tests=error 2>&1 | tee "$log" || status=$?
    judge_skips "$folder/Testing/Temporary/LastTest.log" "$log" || status=1
    grep -E '^[0-9]+% tests passed' "$log" || status=1
    rm -f "$log"
    return $status
}
