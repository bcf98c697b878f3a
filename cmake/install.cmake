# What `cmake --install` puts where, by component: `runtime`, the shared library; `development`, its headers, a
# CMake package and a pkg-config file; `command`, the command with its manual pages and completions. In a build
# for Python's wheel, `python`: library and command as plain files.
include(cmake/product.cmake)
include(CMakePackageConfigHelpers)

if(SKBUILD)
  # Archives cannot store links, so the library's name has no version.
  set_property(TARGET kinglet PROPERTY VERSION)
  set_property(TARGET kinglet PROPERTY SOVERSION)
  install(TARGETS kinglet LIBRARY DESTINATION kinglet_lm COMPONENT python)
  if(TARGET kinglet_command)
    install(TARGETS kinglet_command RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  endif()
  return()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kinglet)
install(TARGETS kinglet EXPORT kingletTargets
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
        RUNTIME COMPONENT runtime
        ARCHIVE COMPONENT development)
install(DIRECTORY include/kinglet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT kingletTargets NAMESPACE kinglet:: DESTINATION ${package_dir} COMPONENT development)

configure_package_config_file(cmake/kingletConfig.cmake.in ${PROJECT_BINARY_DIR}/kingletConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kingletConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kingletConfig.cmake ${PROJECT_BINARY_DIR}/kingletConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)

# The .pc file finds its prefix from where it lies, so that an installed tree may be moved.
file(RELATIVE_PATH KINGLET_PC_PREFIX
  /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/kinglet.pc.in ${PROJECT_BINARY_DIR}/kinglet.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kinglet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)

if(TARGET kinglet_command)
  install(TARGETS kinglet_command RUNTIME COMPONENT command)
  if(KINGLET_PAGES)
    install(DIRECTORY ${KINGLET_PAGES}/man/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
    install(DIRECTORY ${KINGLET_PAGES}/bash-completion ${KINGLET_PAGES}/zsh ${KINGLET_PAGES}/fish
            DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT command)
  endif()
endif()
