# The kernels for GPUs. This version does not ship them: kernels_nvcc_check compiles every type for the oldest and the newest
# architecture that we write for, which shows that the one source is CUDA C++ too. It is a compile check and no more.

# rondo_nvcc_command(suffix storage id arch object command_out)
function(rondo_nvcc_command suffix storage id arch object command_out)
    set(${command_out}
        ${RONDO_NVCC} -std=c++17 -O3 -fmad=false -arch=${arch} -cubin -Werror all-warnings
        -DRONDO_NO_CUDA_HEADERS -DRONDO_KERNELS=rondo_gpu
        -DRONDO_SUFFIX=${suffix} -DRONDO_STORAGE=${storage} -DRONDO_DTYPE_ID=${id}
        -I${PROJECT_SOURCE_DIR}/src/device -I${PROJECT_SOURCE_DIR}/src/device/api -I${PROJECT_SOURCE_DIR}/include
        ${PROJECT_SOURCE_DIR}/src/device/kernels/entry_gpu.cu -o ${object}
        PARENT_SCOPE)
endfunction()

function(rondo_gpu_kernel_check)
    rondo_table_rows(${PROJECT_SOURCE_DIR}/src/device/api/device/dtypes.def RONDO_DTYPE rows)
    file(GLOB sources ${PROJECT_SOURCE_DIR}/src/device/kernels/*.* ${PROJECT_SOURCE_DIR}/src/device/api/device/*.*)
    set(objects "")
    foreach(row IN LISTS rows)
        rondo_split_dtype("${row}" id suffix storage)
        foreach(arch IN ITEMS sm_80 sm_90)
            set(object ${CMAKE_CURRENT_BINARY_DIR}/kernels/${suffix}_${arch}.cubin)
            rondo_nvcc_command(${suffix} ${storage} ${id} ${arch} ${object} command)
            add_custom_command(OUTPUT ${object} COMMAND ${command} DEPENDS ${sources} VERBATIM)
            list(APPEND objects ${object})
        endforeach()
    endforeach()
    add_custom_target(kernels_nvcc_check DEPENDS ${objects})
endfunction()
