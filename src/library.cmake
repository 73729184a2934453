# The products made of all layers: the library the tests link, libnccl.so.2, the static library, and what finds them.
include(GNUInstallDirs)

get_property(layers GLOBAL PROPERTY RONDO_LAYERS)
set(objects "")
foreach(layer IN LISTS layers)
    list(APPEND objects $<TARGET_OBJECTS:${layer}>)
endforeach()

# Every layer with all its symbols, for tests of the inside.
add_library(rondo_testable STATIC ${objects})
set_target_properties(rondo_testable PROPERTIES LINKER_LANGUAGE C)
target_link_libraries(rondo_testable PUBLIC ${SODIUM_STATIC} ${FCONTEXT_STATIC} Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(rondo_testable PUBLIC ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(rondo_testable PUBLIC RONDO_NO_CUDA_HEADERS)
foreach(layer IN LISTS layers)
    target_link_libraries(rondo_testable PUBLIC ${layer}_api)
endforeach()

# libnccl.so.2. It needs libc alone at load time: the C linker brings no C++ runtime, -z defs refuses a symbol nobody
# provides, and the two libraries from outside are folded in and hidden. nodelete: the library keeps threads and
# thread-local data, which an unmapping by dlclose would pull away from under them.
set(map ${CMAKE_CURRENT_LIST_DIR}/libnccl.map)
set(CMAKE_CXX_IMPLICIT_LINK_LIBRARIES "") # or cmake adds libstdc++ and libm for the kernels' objects
add_library(nccl SHARED ${objects})
set_target_properties(nccl PROPERTIES
    LINKER_LANGUAGE C
    VERSION ${PROJECT_VERSION}
    SOVERSION 2
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
    LINK_DEPENDS ${map})
target_link_options(nccl PRIVATE
    -static-libgcc -Wl,--as-needed -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete -Wl,--exclude-libs,ALL
    -Wl,-Bsymbolic-functions -Wl,--version-script=${map})
target_link_libraries(nccl PRIVATE ${SODIUM_STATIC} ${FCONTEXT_STATIC})
target_include_directories(nccl INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)

# libnccl_static.a: one object in which everything is resolved, with only the interface left global, so that neither our
# own names nor libsodium's can meet a program's.
set(whole ${PROJECT_BINARY_DIR}/lib/libnccl_static.o)
set(static ${PROJECT_BINARY_DIR}/lib/libnccl_static.a)
add_custom_command(
    OUTPUT ${static}
    COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${whole} ${objects} ${SODIUM_STATIC} ${FCONTEXT_STATIC}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=nccl* --keep-global-symbol=pnccl* ${whole}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${static}
    COMMAND ${CMAKE_AR} rcs ${static} ${whole}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${whole}
    DEPENDS ${objects}
    COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(nccl_static ALL DEPENDS ${static})

# include/, as programs outside see it.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include/*)
set(copies "")
foreach(header IN LISTS headers)
    add_custom_command(
        OUTPUT ${PROJECT_BINARY_DIR}/${header}
        COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/${header} ${PROJECT_BINARY_DIR}/${header}
        DEPENDS ${PROJECT_SOURCE_DIR}/${header}
        VERBATIM)
    list(APPEND copies ${PROJECT_BINARY_DIR}/${header})
endforeach()
add_custom_target(rondo_headers ALL DEPENDS ${copies})

# nccl.pc and the CMake package, once for the build folder and once for an installation; both find the rest by their
# own place, so that either tree can be moved.
include(CMakePackageConfigHelpers)
function(rondo_write_finders folder RONDO_LIBDIR RONDO_INCLUDEDIR)
    file(RELATIVE_PATH RONDO_TO_PREFIX /prefix/${RONDO_LIBDIR} /prefix) # "../", one a level
    configure_file(${PROJECT_SOURCE_DIR}/cmake/nccl.pc.in ${folder}/pkgconfig/nccl.pc @ONLY)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/hostcuda.pc.in ${folder}/pkgconfig/hostcuda.pc @ONLY)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/ncclConfig.cmake.in ${folder}/cmake/nccl/ncclConfig.cmake @ONLY)
    write_basic_package_version_file(${folder}/cmake/nccl/ncclConfigVersion.cmake COMPATIBILITY SameMajorVersion)
endfunction()
set(installed ${PROJECT_BINARY_DIR}/installed)
rondo_write_finders(${PROJECT_BINARY_DIR}/lib lib include)
rondo_write_finders(${installed} ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_INCLUDEDIR})

install(TARGETS nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${static} DESTINATION ${CMAKE_INSTALL_LIBDIR})
# The generated copies of hostcuda's tables are among them.
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${installed}/ DESTINATION ${CMAKE_INSTALL_LIBDIR})
