# Warnings are errors, for every target; sanitizers and frame pointers when asked for.
add_compile_options(-Wall -Wextra -Wshadow -Wpointer-arith -Wundef -Werror -fno-strict-aliasing -ffp-contract=off)
add_compile_options($<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
add_compile_definitions(_GNU_SOURCE)
# The build type of the sanitizer presets: quick to compile, with lines in the reports.
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")
if(RONDO_SANITIZE)
    add_compile_options(-fsanitize=${RONDO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${RONDO_SANITIZE})
    if(RONDO_SANITIZE MATCHES "thread")
        # gcc warns that ThreadSanitizer ignores fences. Ours order only who wakes whom (line.h), never data.
        add_compile_options(-Wno-tsan)
    endif()
endif()
