# Flags every target of the project is compiled with.
#
# -ffp-contract=off: a fused multiply-add happens only where the source says so (docs/NUMERICS.md, rule 7).
# -fno-math-errno: lets sqrt and rint be single instructions; nothing reads errno.
add_library(kinglet_flags INTERFACE)
target_compile_options(kinglet_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off -fno-math-errno -Wall -Wextra -Wshadow -Wconversion
      -Wno-sign-conversion -Wvla -Wundef>)
# g++ 12 sees an overlap in std::string's operator+ that is not there (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(kinglet_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
# In a batch every source is an included file, where g++ takes anonymous namespaces for a mistake.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(kinglet_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(KINGLET_WERROR)
  target_compile_options(kinglet_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(KINGLET_SANITIZE)
  # Tests that repeat the same work many times repeat it less.
  target_compile_definitions(kinglet_flags INTERFACE KINGLET_SANITIZED)
  target_compile_options(kinglet_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${KINGLET_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer -g1 -UNDEBUG>
    # Optimising test code takes as long as the rest of a sanitizer's build together.
    $<$<COMPILE_LANGUAGE:C,CXX>:$<IF:$<BOOL:$<TARGET_PROPERTY:KINGLET_IS_TEST>>,-O0,-O1>>)
  # What sanitizers add between a value and its use hides from g++ 12 that the value was set.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(kinglet_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
  target_link_options(kinglet_flags INTERFACE -fsanitize=${KINGLET_SANITIZE})
endif()
# Where relocations lie is read-only once a program runs, and no stack is executable
# (tests/install/hardening_test.py). The command is a position-independent executable.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
include(CheckLinkerFlag)
check_linker_flag(CXX "LINKER:-z,relro,-z,now,-z,noexecstack" KINGLET_LINKER_HARDENS)
if(KINGLET_LINKER_HARDENS)
  add_link_options("LINKER:-z,relro,-z,now,-z,noexecstack")
endif()
if(KINGLET_FUZZ)
  # Counters at every branch; the programs of fuzz/ link the library that reads them.
  target_compile_options(kinglet_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
endif()
target_include_directories(kinglet_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)

find_program(KINGLET_CCACHE ccache)
if(KINGLET_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_C_COMPILER_LAUNCHER ${KINGLET_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${KINGLET_CCACHE})
endif()

# A static library of the project's own sources with the project's flags. The flags are PRIVATE-like: nothing
# of this leaks to users of the installed package.
function(kinglet_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC kinglet_flags)
endfunction()
