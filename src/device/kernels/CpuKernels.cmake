# The units of the CPU device's kernels: for each instruction set of isas.def its entry, and its loops over elements for each
# row of dtypes.def. Both tables are read here, so that there is no second list.

# What sanitizers look at is the same at -O1, and vectorising instrumented loops takes ten times as long.
set(RONDO_KERNEL_FLAGS -O3 -fno-exceptions -fno-rtti -fno-trapping-math)
if(RONDO_SANITIZE)
    list(TRANSFORM RONDO_KERNEL_FLAGS REPLACE -O3 -O1)
endif()

# Rows as they stand in the file; a change of the file configures again.
function(rondo_table_rows file macro rows_out)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} rows REGEX "^${macro}\\(")
    set(${rows_out} ${rows} PARENT_SCOPE)
endfunction()

# The columns of a row of dtypes.def.
function(rondo_split_dtype row id_out suffix_out storage_out)
    string(REGEX MATCH "^RONDO_DTYPE\\(([A-Za-z0-9]+), *([a-z0-9]+), *[0-9]+, *[A-Z]+, *([a-z0-9_]+)," matched "${row}")
    if(NOT matched)
        message(FATAL_ERROR "dtypes.def: cannot read this row: ${row}")
    endif()
    set(${id_out} ${CMAKE_MATCH_1} PARENT_SCOPE)
    set(${suffix_out} ${CMAKE_MATCH_2} PARENT_SCOPE)
    set(${storage_out} ${CMAKE_MATCH_3} PARENT_SCOPE)
endfunction()

# rondo_isa_list(names): the instruction sets built on this processor; RONDO_ISA_FLAGS_<name> in the caller's scope.
function(rondo_isa_list names_out)
    rondo_table_rows(${PROJECT_SOURCE_DIR}/src/device/kernels/isas.def RONDO_ISA rows)
    set(names "")
    foreach(row IN LISTS rows)
        string(REGEX MATCH "^RONDO_ISA\\(([a-z0-9]+), *\"([^\"]*)\"\\)" matched "${row}")
        if(NOT matched)
            message(FATAL_ERROR "isas.def: cannot read this row: ${row}")
        endif()
        set(name ${CMAKE_MATCH_1})
        separate_arguments(flags UNIX_COMMAND "${CMAKE_MATCH_2}")
        if(name STREQUAL base OR CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
            list(APPEND names ${name})
            set(RONDO_ISA_FLAGS_${name} ${flags} PARENT_SCOPE)
        endif()
    endforeach()
    set(${names_out} ${names} PARENT_SCOPE)
endfunction()

# One unit: a file of one line that includes the source, with its own flags and definitions.
function(rondo_kernel_unit name source isa definitions units_inout)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/kernels/${name}.cc)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${source}\"\n" @ONLY)
    set_source_files_properties(${unit} PROPERTIES
        COMPILE_OPTIONS "${RONDO_KERNEL_FLAGS};${RONDO_ISA_FLAGS_${isa}}"
        COMPILE_DEFINITIONS "RONDO_KERNELS=rondo_${isa};${definitions}")
    set(${units_inout} ${${units_inout}} ${unit} PARENT_SCOPE)
endfunction()

function(rondo_cpu_kernel_units units_out)
    rondo_isa_list(isas)
    rondo_table_rows(${PROJECT_SOURCE_DIR}/src/device/api/device/dtypes.def RONDO_DTYPE dtypes)
    set(units "")
    foreach(isa IN LISTS isas)
        rondo_kernel_unit(entry_${isa} kernels/entry_cpu.cc ${isa} "" units)
        foreach(row IN LISTS dtypes)
            rondo_split_dtype("${row}" id suffix storage)
            rondo_kernel_unit(spans_${suffix}_${isa} kernels/spans_cpu.cc ${isa}
                "RONDO_SUFFIX=${suffix};RONDO_STORAGE=${storage}" units)
        endforeach()
    endforeach()
    set(${units_out} ${units} PARENT_SCOPE)
endfunction()
