#!/usr/bin/env bash
# unique_names.sh ROOT - no two units of the sources share a base name, so that a name alone says which file is meant.
#
# A unit is the files of one base name in one folder; a layer's api/ folder counts as the layer's own.
set -euo pipefail
cd "$1"

units() {
    find src tests examples perf bench -type f ! -name CMakeLists.txt ! -name README.md |
        sed -E 's|^(.*)/([^/]+)$|\1 \2|; s|/api/[^/ ]+ | |; s|^([^ ]+) ([^.]+).*$|\2 \1|' | sort -u
}

shared=$(units | awk '{ folders[$1] = folders[$1] " " $2; count[$1]++ } END { for (u in count) if (count[u] > 1) print u ":" folders[u] }' | sort)
[ "$(units | wc -l)" -gt 100 ] || { echo "found next to no files below $1"; exit 1; }
[ -z "$shared" ] || { echo "base names used in more than one folder:"; echo "$shared"; exit 1; }
