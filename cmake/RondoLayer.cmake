# The architecture, where the compiler reads it.
#
#   rondo_layer(transport USES base device SOURCES shm.c ...)
#
# makes the object library rondo_transport from src/transport. Its sources see the folder itself, include/, its own
# api/ and the api/ of the layers it USES, directly or through them: nothing else compiles.
function(rondo_layer name)
    cmake_parse_arguments(LAYER "" "" "USES;SOURCES" ${ARGN})
    add_library(rondo_${name} OBJECT ${LAYER_SOURCES})
    target_compile_definitions(rondo_${name} PRIVATE RONDO_NO_CUDA_HEADERS)
    target_include_directories(rondo_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
    add_library(rondo_${name}_api INTERFACE)
    target_include_directories(rondo_${name}_api INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/api)
    foreach(used IN LISTS LAYER_USES)
        target_link_libraries(rondo_${name}_api INTERFACE rondo_${used}_api)
    endforeach()
    target_link_libraries(rondo_${name} PRIVATE rondo_${name}_api)
    set_property(GLOBAL APPEND PROPERTY RONDO_LAYERS rondo_${name})
endfunction()
