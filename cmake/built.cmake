# For Python's wheel, with -DKINGLET_BUILT=FOLDER: takes library and command from a build folder of this version instead of
# compiling them once more (docs/PYTHON.md). The package checks at import that both are of one version.
set(built_command ${KINGLET_BUILT}/bin/kinglet)
set(name libkinglet.so)
file(GLOB built_library ${KINGLET_BUILT}/libkinglet.so.${PROJECT_VERSION})
if(EXISTS ${KINGLET_BUILT}/bin/kinglet.dll)
  set(name kinglet.dll)
  set(built_library ${KINGLET_BUILT}/bin/kinglet.dll)
  string(APPEND built_command .exe)
elseif(EXISTS ${KINGLET_BUILT}/libkinglet.${PROJECT_VERSION}.dylib)
  set(name libkinglet.dylib)
  set(built_library ${KINGLET_BUILT}/libkinglet.${PROJECT_VERSION}.dylib)
endif()
if(NOT built_library OR NOT EXISTS ${built_command})
  message(FATAL_ERROR "KINGLET_BUILT: ${KINGLET_BUILT}: expected libkinglet.so.${PROJECT_VERSION} and bin/kinglet, found "
    "one of them missing; build them with cmake --build FOLDER --target kinglet kinglet_command, or leave KINGLET_BUILT out")
endif()
foreach(target kinglet kinglet_command)  # what python/pyproject.toml builds
  add_custom_target(${target})
endforeach()
install(PROGRAMS ${built_library} DESTINATION kinglet_lm RENAME ${name} COMPONENT python)
install(PROGRAMS ${built_command} DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
