# edgeshed_test(<target> SOURCES <file.cc>... LABELS <label>...
#               [LIBS <library>...] [TIMEOUT_S <seconds>])
#
# Builds a GoogleTest program (gtest_main and gmock are linked) and tells ctest about each of its
# tests, as <target>.<Suite>.<Name>. Labels, at least one:
#   quick  no root, no network, well under a second each; run first and in parallel
#   root   needs root and BPF
#   netns  makes network namespaces (implies that it needs root)
#   slow   more than about ten seconds
#   vm     boots a guest
# A test without `quick` never runs beside another one: it may own namespaces, hooks or pins.

include(GoogleTest)

set(EDGESHED_TEST_LABELS quick root netns slow vm)

# What `tools/dev test --quick` builds: under a sanitizer the rest takes minutes and is not run.
add_custom_target(quick_tests)

function(edgeshed_test target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT_S" "SOURCES;LABELS;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES OR NOT arg_LABELS)
    message(FATAL_ERROR "edgeshed_test(${target}): wrong arguments; write edgeshed_test(<target> "
      "SOURCES <file>... LABELS <label>... [LIBS <library>...] [TIMEOUT_S <seconds>])")
  endif()
  foreach(label IN LISTS arg_LABELS)
    if(NOT label IN_LIST EDGESHED_TEST_LABELS)
      message(FATAL_ERROR "edgeshed_test(${target}): label ${label} is unknown; "
        "allowed: ${EDGESHED_TEST_LABELS}")
    endif()
  endforeach()
  set(serial OFF)
  if(NOT quick IN_LIST arg_LABELS)
    set(serial ON)
  endif()
  if(NOT arg_TIMEOUT_S)
    set(arg_TIMEOUT_S 60)
  endif()

  add_executable(${target} ${arg_SOURCES})
  if(quick IN_LIST arg_LABELS)
    add_dependencies(quick_tests ${target})
  endif()
  target_link_libraries(${target} PRIVATE ${arg_LIBS} GTest::gmock GTest::gtest_main)
  if(EDGESHED_SANITIZE)
    # Compilers differ in how they tell.
    target_compile_definitions(${target} PRIVATE EDGESHED_SANITIZED)
  endif()
  # PRE_TEST: the program is asked for its tests when ctest runs, not while building, so that a
  # test program that cannot start (a sanitizer, a missing kernel feature) does not stop the build.
  # NO_PRETTY_VALUES: the bytes of a parameter in a test's name change from run to run.
  gtest_discover_tests(${target}
    NO_PRETTY_VALUES
    TEST_PREFIX ${target}.
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 30
    PROPERTIES TIMEOUT ${arg_TIMEOUT_S} RUN_SERIAL ${serial})
  # gtest_discover_tests keeps only the first of several labels, so they are set after it, by a
  # script that ctest reads next; <target>_TESTS is the list of names that the discovery left.
  set(labels_script ${CMAKE_CURRENT_BINARY_DIR}/${target}_labels.cmake)
  file(CONFIGURE OUTPUT ${labels_script} @ONLY CONTENT
    "if(@target@_TESTS)
  set_tests_properties(\${@target@_TESTS} PROPERTIES LABELS \"@arg_LABELS@\")
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_script})
endfunction()
