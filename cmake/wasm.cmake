# For WebAssembly (scripts/wasm). The headers of FlatBuffers, xxHash and Highway are this machine's; they lie next to
# those of its C library, which are not for WebAssembly, so that a folder with links to the three is searched instead.
# Of Highway the library is not needed: a module has one instruction set.
set(wasm_headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${wasm_headers})
foreach(header flatbuffers/flatbuffers.h hwy/highway.h xxhash.h)
  find_path(folder ${header} PATHS /usr/local/include /usr/include NO_CMAKE_FIND_ROOT_PATH NO_CACHE REQUIRED)
  string(REGEX REPLACE "/.*" "" name ${header})
  file(CREATE_LINK ${folder}/${name} ${wasm_headers}/${name} SYMBOLIC)
  unset(folder)
endforeach()
set(KINGLET_FLATBUFFERS ${wasm_headers})
set(KINGLET_XXHASH ${wasm_headers})
set(KINGLET_FLATC "")  # what flatc made is at hand
set(hwy_FOUND ON)
add_library(hwy::hwy INTERFACE IMPORTED)
target_include_directories(hwy::hwy SYSTEM INTERFACE ${wasm_headers})

# Bytes are claimed before memory is taken, at most what can be addressed (runtime/memory_budget.h), so that narrowing
# a claimed number of 64 bits to a size of 32 is no mistake. Exceptions are WebAssembly's own, return addresses are out of
# a program's reach, and the C++ library of emscripten 3.1.6 lacks std::bit_cast.
target_compile_options(kinglet_flags INTERFACE
  -msimd128 -fwasm-exceptions -fno-stack-protector -Wno-c++11-narrowing -Wno-shorten-64-to-32
  $<$<COMPILE_LANGUAGE:CXX>:-include ${PROJECT_SOURCE_DIR}/cmake/wasm_bit_cast.h>)
add_link_options(-fwasm-exceptions)
