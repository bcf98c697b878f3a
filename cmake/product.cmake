# The product: one shared library that exports the C interface and nothing else. The project's static
# libraries are linked into it; what they hold stays hidden.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/c_api/*.cc)
add_library(kinglet SHARED ${sources})
add_library(kinglet::kinglet ALIAS kinglet)
target_link_libraries(kinglet PRIVATE kinglet_runtime)
target_compile_definitions(kinglet PRIVATE
  KINGLET_VERSION="${PROJECT_VERSION}" KINGLET_SOVERSION=${PROJECT_VERSION_MAJOR})
target_include_directories(kinglet PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(kinglet PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

# Hidden visibility covers our own sources; the linker script also covers the standard library's templates.
include(CheckLinkerFlag)
set(export_map ${PROJECT_SOURCE_DIR}/cmake/kinglet.map)
check_linker_flag(CXX "LINKER:--version-script=${export_map}" KINGLET_LINKER_HAS_VERSION_SCRIPT)
if(KINGLET_LINKER_HAS_VERSION_SCRIPT)
  target_link_options(kinglet PRIVATE "LINKER:--version-script=${export_map}")
  set_target_properties(kinglet PROPERTIES LINK_DEPENDS ${export_map})
endif()
