#!/usr/bin/env bash
# consumers.sh BUILD SOURCE CC CXX FLAGS... - programs outside find, compile and link the library with pkg-config, with
# find_package, statically, and in an installation. FLAGS are those that a sanitizer build asks of every program.
set -euo pipefail
build=$1 source=$2 cc=$3 cxx=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

if ! command -v pkg-config >/dev/null; then
    echo "SKIPPED: pkg-config is not installed"
    exit 77
fi
export PKG_CONFIG_PATH=$build/lib/pkgconfig
read -ra found_compile <<<"$(pkg-config --cflags nccl) -DRONDO_NO_CUDA_HEADERS"
read -ra found_link <<<"$(pkg-config --libs nccl)"
warnings=(-Wall -Wextra -pedantic -Werror)

echo "C, by pkg-config:"
"$cc" -std=c99 "${warnings[@]}" "$@" "${found_compile[@]}" "$source/consumer.c" -o by_c "${found_link[@]}"
LD_LIBRARY_PATH=$build/lib ./by_c
echo "C++, by pkg-config:"
"$cxx" -std=c++11 -x c++ "${warnings[@]}" "$@" "${found_compile[@]}" "$source/consumer.c" -x none -o by_cxx "${found_link[@]}"
LD_LIBRARY_PATH=$build/lib ./by_cxx
echo "C, static:"
"$cc" "${warnings[@]}" "$@" "${found_compile[@]}" "$source/consumer.c" -o by_static "$build/lib/libnccl_static.a"
./by_static
if readelf -d by_static | grep -q libnccl; then
    echo "the static program asks for libnccl.so"
    exit 1
fi
if nm -g --defined-only "$build/lib/libnccl_static.a" | grep -E '^[0-9a-f]+ . ' | grep -vE ' p?nccl[A-Z]'; then
    echo "the static library shows more than the interface: the names above"
    exit 1
fi
echo "C, by find_package:"
cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(consumer LANGUAGES C)
find_package(nccl 2.30 REQUIRED)
foreach(kind IN ITEMS nccl nccl_static)
    add_executable(with_\${kind} $source/consumer.c)
    target_compile_definitions(with_\${kind} PRIVATE RONDO_NO_CUDA_HEADERS)
    target_link_libraries(with_\${kind} PRIVATE NCCL::\${kind})
endforeach()
END
cmake -S . -B tree -DCMAKE_PREFIX_PATH="$build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$*" >configure.log || {
    cat configure.log
    exit 1
}
cmake --build tree >build.log || {
    cat build.log
    exit 1
}
tree/with_nccl
tree/with_nccl_static
echo "paths built in:"
if readelf -d "$build"/lib/*.so* "$build"/lib/hostcuda/*.so* "$build"/bin/*_perf "$build"/bin/rondo 2>/dev/null | grep -E 'R(UN)?PATH' |
    grep -vE '\[\$ORIGIN[^:]*(:\$ORIGIN[^:]*)*\]$'; then
    echo "a product looks for libraries outside its own tree, or, by an empty element, in the current folder: above"
    exit 1
fi
echo "installed, and moved:"
cmake --install "$build" --prefix "$work/first" >install.log || {
    cat install.log
    exit 1
}
mv first second
export PKG_CONFIG_PATH=$work/second/lib/pkgconfig
read -ra moved <<<"$(pkg-config --cflags --libs nccl hostcuda)"
"$cc" "$@" "$source/consumer.c" -o by_moved "${moved[@]}"
LD_LIBRARY_PATH=second/lib:second/lib/hostcuda ./by_moved
env -u LD_LIBRARY_PATH second/bin/rondo version
for program in second/bin/*_perf; do
    [[ ! -e $program ]] || env -u LD_LIBRARY_PATH "$program" --procs 2 -b 64 -e 64 -n 1 -w 0 >run.log || {
        cat run.log
        exit 1
    }
done
