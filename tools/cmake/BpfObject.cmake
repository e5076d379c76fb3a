# edgeshed_bpf_object(<target> SOURCE <file.bpf.c> OUTPUT_VAR <var>)
#
# Compiles one BPF source file into <current binary dir>/<file.bpf.o>, as part of `all`, and sets
# <var> to the full path of the object. Another target that reads the object at build time says
# add_dependencies(<that target> <target>), or names the path in DEPENDS of a custom command.
#
# The depfile makes a change in any included header rebuild the object.

find_program(EDGESHED_BPF_CLANG NAMES clang-19 REQUIRED)
find_program(EDGESHED_BPF_STRIP NAMES llvm-strip-19 REQUIRED)

# <linux/*.h> includes <asm/*.h>, which Debian keeps in the directory of the architecture; with
# -target bpf clang does not look there by itself.
set(EDGESHED_BPF_FLAGS
  -target bpf -mcpu=v3 -O2 -g -Wall -Werror
  -I${PROJECT_SOURCE_DIR}
  -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

function(edgeshed_bpf_object target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE;OUTPUT_VAR" "")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCE OR NOT arg_OUTPUT_VAR)
    message(FATAL_ERROR "edgeshed_bpf_object(${target}): wrong arguments; write "
      "edgeshed_bpf_object(<target> SOURCE <file.bpf.c> OUTPUT_VAR <var>)")
  endif()
  get_filename_component(source ${arg_SOURCE} ABSOLUTE)
  get_filename_component(name ${source} NAME)
  if(NOT name MATCHES "\\.bpf\\.c$")
    message(FATAL_ERROR "edgeshed_bpf_object(${target}): SOURCE is ${name}; "
      "a BPF source file is named <name>.bpf.c")
  endif()
  string(REGEX REPLACE "\\.c$" ".o" object ${CMAKE_CURRENT_BINARY_DIR}/${name})

  # Stripping drops DWARF (large, and no loader reads it) and keeps BTF.
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${EDGESHED_BPF_CLANG} ${EDGESHED_BPF_FLAGS} -MD -MF ${object}.d -MT ${object}
            -c ${source} -o ${object}
    COMMAND ${EDGESHED_BPF_STRIP} -g ${object}
    DEPENDS ${source}
    DEPFILE ${object}.d
    COMMENT "Building BPF object ${name}"
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${object})
  set(${arg_OUTPUT_VAR} ${object} PARENT_SCOPE)
endfunction()
