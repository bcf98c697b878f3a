# Flags every target of the project is compiled with.
#
# -ffp-contract=off: a fused multiply-add happens only where the source has one (docs/NUMERICS.md, rule 7).
# -fno-math-errno: lets sqrt and rint be single instructions; nothing reads errno.
add_library(kinglet_flags INTERFACE)
target_compile_options(kinglet_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off -fno-math-errno -Wall -Wextra -Wshadow -Wconversion
      -Wno-sign-conversion -Wvla -Wundef>)
# g++ 12 sees an overlap in std::string's operator+ that is not there (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(kinglet_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  # For AArch64 g++ 12 doubts that an optional's vector was set where the optional is empty.
  if(CMAKE_CROSSCOMPILING)
    target_compile_options(kinglet_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
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
  # The standard library checks indices too. Here only: the product never aborts its host.
  target_compile_definitions(kinglet_flags INTERFACE _GLIBCXX_ASSERTIONS)
  target_compile_options(kinglet_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${KINGLET_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer -g1 -UNDEBUG>
    # Optimising test code takes as long as the rest of a sanitizer's build together.
    $<$<COMPILE_LANGUAGE:C,CXX>:$<IF:$<BOOL:$<TARGET_PROPERTY:KINGLET_IS_TEST>>,-O0,-O1>>)
  # Not: what AddressSanitizer finds too, the types of objects, and all that tests themselves do. It would take a quarter
  # of the time to compile.
  if(KINGLET_SANITIZE MATCHES "undefined")
    target_compile_options(kinglet_flags INTERFACE
      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize=null$<COMMA>vptr$<COMMA>object-size>
      # clang's, which programs in C that use the library cannot be linked with
      $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fno-sanitize=function>
      $<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<BOOL:$<TARGET_PROPERTY:KINGLET_IS_TEST>>>:-fno-sanitize=undefined>)
  endif()
  # The code that sanitizers add between a value and its use hides from g++ 12 that the value was set.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(kinglet_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
  target_link_options(kinglet_flags INTERFACE -fsanitize=${KINGLET_SANITIZE})
endif()
if(KINGLET_COVERAGE)
  # Assertions of the program about itself are omitted, as in the product: no test takes their branches. Nothing is
  # inlined before the counters are set, so that branches are the source's and not the standard library's.
  target_compile_options(kinglet_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:--coverage -DNDEBUG -fno-early-inlining
        $<IF:$<BOOL:$<TARGET_PROPERTY:KINGLET_IS_TEST>>,-O0,-O1>>)
  target_link_options(kinglet_flags INTERFACE --coverage)
endif()
# Hardening (tests/install/hardening_test.py). A buffer on the stack that overflows ends the program instead of
# returning to an address that an attacker chose. No folder's name is in what is built, so that builds in two folders are
# the same bytes (scripts/reproducible). Where relocations lie is read-only once a program runs, and no stack
# is executable. The command is a position-independent executable. Test programs, which are not shipped, are
# compiled without these flags; counters of coverage need the folder's name.
set(shipped "$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:KINGLET_IS_TEST>>>>")
target_compile_options(kinglet_flags INTERFACE $<${shipped}:-fstack-protector-strong>)
# A frame larger than a page touches each of its pages in order, so that it cannot jump over the guard page.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag("-Werror -fstack-clash-protection" KINGLET_STACK_CLASH)
if(KINGLET_STACK_CLASH AND NOT WIN32)  # where each frame does, and g++ 12 ends with an internal error
  target_compile_options(kinglet_flags INTERFACE $<${shipped}:-fstack-clash-protection>)
endif()
# The C library's functions check sizes that the compiler knows. Only optimised code can; sanitizers check more.
if(NOT KINGLET_SANITIZE AND NOT KINGLET_COVERAGE)
  target_compile_options(kinglet_flags INTERFACE
    $<$<AND:${shipped},$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>)
endif()
if(NOT KINGLET_COVERAGE)
  target_compile_options(kinglet_flags INTERFACE $<${shipped}:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>)
endif()
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
