# kinglet.wasm has the functions that javascript/kinglet.js calls, and nothing of what only others use.
file(READ ${PROJECT_SOURCE_DIR}/javascript/kinglet.js module)
string(REGEX MATCHALL "[\".]kinglet_[a-z_]+" names "${module}")
string(REGEX MATCHALL "kinglet_[a-z_]+" names "${names}")
list(REMOVE_DUPLICATES names)
list(TRANSFORM names PREPEND _)
list(JOIN names "," names)
add_executable(kinglet_wasm $<TARGET_OBJECTS:kinglet>)
target_link_libraries(kinglet_wasm PRIVATE kinglet)
target_link_options(kinglet_wasm PRIVATE --no-entry -O2 -sWASM_BIGINT -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB
                    -sEXPORTED_FUNCTIONS=_malloc,_free,${names})
set_target_properties(kinglet_wasm PROPERTIES OUTPUT_NAME kinglet SUFFIX .wasm LINKER_LANGUAGE CXX)
