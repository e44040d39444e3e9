# What every target of the project shares: warnings, sanitizers, include root.
add_library(tandem_flags INTERFACE)
target_include_directories(tandem_flags INTERFACE ${PROJECT_SOURCE_DIR})
# -ffp-contract=off: one written operation is one rounding, so a result never depends on which expressions fuse.
target_compile_options(tandem_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror -ffp-contract=off>)
if(TANDEM_SANITIZE)
  target_compile_options(tandem_flags INTERFACE -fsanitize=${TANDEM_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(tandem_flags INTERFACE -fsanitize=${TANDEM_SANITIZE})
endif()

# tandem_layer(NAME SOURCES... [DEPENDS libs...]): one layer of the library; DEPENDS are the layers it may include.
function(tandem_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC tandem_flags ${ARG_DEPENDS})
endfunction()

add_custom_target(unit_tests COMMENT "every test program labelled unit")

# tandem_test(NAME SOURCES... [DEPENDS libs...] [LABELS ...]): one GoogleTest program, its tests known to ctest one by one.
function(tandem_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "DEPENDS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  # GCC 12 sees uninitialised members in nested braces around options that hold a vector (a false positive).
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_libraries(${name} PRIVATE tandem_flags ${ARG_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE TANDEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set(properties LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if("unit" IN_LIST ARG_LABELS)
    add_dependencies(unit_tests ${name})
  else()
    list(APPEND properties RUN_SERIAL TRUE)  # a run on a real model takes every core and much memory
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()
