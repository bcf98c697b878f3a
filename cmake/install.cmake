# What `cmake --install` puts where: the library, its headers, a CMake package and a pkg-config file; the
# command with its manual pages and completions.
include(cmake/product.cmake)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kinglet)
install(TARGETS kinglet EXPORT kingletTargets)
install(DIRECTORY include/kinglet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT kingletTargets NAMESPACE kinglet:: DESTINATION ${package_dir})

configure_package_config_file(cmake/kingletConfig.cmake.in ${PROJECT_BINARY_DIR}/kingletConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change what it wants.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kingletConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kingletConfig.cmake ${PROJECT_BINARY_DIR}/kingletConfigVersion.cmake
        DESTINATION ${package_dir})

# The .pc file finds its prefix from where it lies, so that an installed tree may be moved.
file(RELATIVE_PATH KINGLET_PC_PREFIX
  /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/kinglet.pc.in ${PROJECT_BINARY_DIR}/kinglet.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kinglet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET kinglet_command)
  install(TARGETS kinglet_command RUNTIME)
  if(KINGLET_PAGES)
    install(DIRECTORY ${KINGLET_PAGES}/man/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(DIRECTORY ${KINGLET_PAGES}/bash-completion ${KINGLET_PAGES}/zsh ${KINGLET_PAGES}/fish
            DESTINATION ${CMAKE_INSTALL_DATADIR})
  endif()
endif()
