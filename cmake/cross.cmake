# For another system than this machine's. Headers of what has no library are this machine's; they lie next to those of its
# C library, which are not for that system, so that a folder with links to them is searched instead.
set(headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
set(needed flatbuffers/flatbuffers.h hwy/highway.h xxhash.h)
if(KINGLET_CONVERTERS OR KINGLET_RUN_COMMAND)
  list(APPEND needed CLI/CLI.hpp nlohmann/json.hpp)
  foreach(package CLI11 nlohmann_json)
    file(WRITE ${CMAKE_FIND_PACKAGE_REDIRECTS_DIR}/${package}Config.cmake "")  # what find_package finds
    add_library(${package}::${package} INTERFACE IMPORTED)
    target_include_directories(${package}::${package} SYSTEM INTERFACE ${headers})
  endforeach()
endif()
foreach(header IN LISTS needed)
  find_path(folder ${header} PATHS /usr/local/include /usr/include NO_CMAKE_FIND_ROOT_PATH NO_CACHE REQUIRED)
  string(REGEX REPLACE "/.*" "" name ${header})
  file(CREATE_LINK ${folder}/${name} ${headers}/${name} SYMBOLIC)
  unset(folder)
endforeach()
set(KINGLET_FLATBUFFERS ${headers})
set(KINGLET_XXHASH ${headers})
set(KINGLET_HIGHWAY ${headers})

# Debian's googletest has its sources.
if(KINGLET_DEVELOPER_MODE)
  find_path(KINGLET_GOOGLETEST src/gtest-all.cc PATHS /usr/src/googletest/googletest NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  find_package(Threads REQUIRED)
  add_library(GTest_gtest STATIC ${KINGLET_GOOGLETEST}/src/gtest-all.cc)
  target_include_directories(GTest_gtest SYSTEM PUBLIC ${KINGLET_GOOGLETEST}/include PRIVATE ${KINGLET_GOOGLETEST})
  target_link_libraries(GTest_gtest PUBLIC Threads::Threads)
  add_library(GTest_gtest_main STATIC ${KINGLET_GOOGLETEST}/src/gtest_main.cc)
  target_link_libraries(GTest_gtest_main PUBLIC GTest_gtest)
  add_library(GTest::gtest ALIAS GTest_gtest)
  add_library(GTest::gtest_main ALIAS GTest_gtest_main)
endif()

if(EMSCRIPTEN)
  set(KINGLET_FLATC "")  # what flatc made is at hand
  # Bytes are claimed before memory is taken, at most what can be addressed (runtime/memory_budget.h), so that narrowing a
  # claimed number of 64 bits to a size of 32 is no mistake. Exceptions are WebAssembly's own, return addresses are out
  # of a program's reach, and the C++ library of emscripten 3.1.6 lacks std::bit_cast.
  target_compile_options(kinglet_flags INTERFACE
    -msimd128 -fwasm-exceptions -fno-stack-protector -Wno-c++11-narrowing -Wno-shorten-64-to-32
    $<$<COMPILE_LANGUAGE:CXX>:-include ${PROJECT_SOURCE_DIR}/cmake/wasm_bit_cast.h>)
  add_link_options(-fwasm-exceptions)
elseif(WIN32)
  # g++ aligns a stack to 16 bytes there, and yet moves vectors of 32 and 64 by instructions for aligned ones (GCC bug
  # 54412); the assembler writes the others in their place. Nothing but what Windows has is needed to run: -static.
  target_compile_options(kinglet_flags INTERFACE -Wa,-muse-unaligned-vector-move)
  target_compile_definitions(kinglet_flags INTERFACE _WIN32_WINNT=0x0A00)
  add_link_options(-static -fstack-protector-strong)
  set(ZLIB_USE_STATIC_LIBS ON)
  # A program finds kinglet.dll in its own folder.
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()
