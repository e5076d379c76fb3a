# Language level, warnings, sanitizers and ccache. Set for the whole project, so that no target
# can be built without them by forgetting a line.

option(EDGESHED_WERROR "Treat compiler warnings as errors" OFF)
set(EDGESHED_SANITIZE "" CACHE STRING "Value for -fsanitize= (empty: none)")

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_compile_options(-Wall -Wextra -Wshadow)
# Leaving the other fields zero is what designated initialisers are for; only clang warns.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-designated-field-initializers>)
if(EDGESHED_WERROR)
  add_compile_options(-Werror)
endif()

# Every include is written from the repository root ("maps/...", "userspace/..."), so that a file
# is named the same way everywhere, the BPF side included.
include_directories(${PROJECT_SOURCE_DIR})

# Builds are the same wherever the tree lies, and no binary carries the path of the build machine.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# The builds that run tests keep assert(); only Release, which is shipped, goes without.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
add_compile_definitions($<$<CONFIG:RelWithDebInfo>:_GLIBCXX_ASSERTIONS>)

if(EDGESHED_SANITIZE)
  add_compile_options(-fsanitize=${EDGESHED_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${EDGESHED_SANITIZE})
else()
  # The daemon runs as root: release builds get the usual hardening.
  add_compile_options($<$<CONFIG:Release>:-fstack-protector-strong>)
  add_compile_definitions($<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
  add_link_options($<$<CONFIG:Release>:-Wl,-z,relro,-z,now>)
endif()

# A file that includes CLI11 or Asio is seconds of their headers and a moment of its own, so some
# targets are compiled several files at a time, in the builds that are made most often. Not in the
# presets release and tsan: there each file is compiled by itself, and fails on what it forgot to
# include.
option(EDGESHED_JOIN "Compile several files at a time in targets with heavy headers" OFF)

# edgeshed_join(<target> <files at a time>)
function(edgeshed_join target count)
  if(EDGESHED_JOIN)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endfunction()

find_program(EDGESHED_CCACHE ccache)
if(EDGESHED_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${EDGESHED_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${EDGESHED_CCACHE})
endif()
