# The product: one library with the C interface. Shared, it exports that interface and nothing else. Static,
# one archive has the objects of the project's own libraries, and the packages name what else must be linked.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/c_api/*.cc)
if(BUILD_SHARED_LIBS)
  add_library(kinglet SHARED ${sources})
else()
  set(parts kinglet_runtime kinglet_kernels kinglet_format)
  if(KINGLET_CUDA)
    list(APPEND parts kinglet_cuda kinglet_cuda_host)
  endif()
  foreach(part ${parts})
    list(APPEND sources $<TARGET_OBJECTS:${part}>)
  endforeach()
  add_library(kinglet STATIC ${sources})
endif()
add_library(kinglet::kinglet ALIAS kinglet)
target_link_libraries(kinglet PRIVATE $<BUILD_INTERFACE:kinglet_runtime>)
target_compile_definitions(kinglet PRIVATE
  KINGLET_VERSION="${PROJECT_VERSION}" KINGLET_SOVERSION=${PROJECT_VERSION_MAJOR})
target_include_directories(kinglet PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(kinglet INTERFACE cxx_std_17)  # of programs in C++: kinglet.hpp
set_target_properties(kinglet PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
if(WIN32 AND BUILD_SHARED_LIBS)
  target_compile_definitions(kinglet PRIVATE KINGLET_EXPORTS)
  set_target_properties(kinglet PROPERTIES PREFIX "")  # kinglet.dll, and libkinglet.dll.a to link
endif()

# The other libraries of a program that links the archive. The program's compiler may be C's.
set(KINGLET_DEPENDENCIES "")  # of the CMake package
set(KINGLET_PC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
  find_package(Threads REQUIRED)
  set(needed ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
  list(REMOVE_ITEM needed ${CMAKE_C_IMPLICIT_LINK_LIBRARIES})
  list(REMOVE_DUPLICATES needed)
  target_link_libraries(kinglet INTERFACE $<INSTALL_INTERFACE:Threads::Threads>)
  string(APPEND KINGLET_DEPENDENCIES "find_dependency(Threads)\n")
  if(KINGLET_ONEDNN)
    list(APPEND needed ${CMAKE_DL_LIBS})
  endif()
  if(KINGLET_CUDA)
    find_package(CUDAToolkit REQUIRED)
    target_link_libraries(kinglet INTERFACE $<INSTALL_INTERFACE:CUDA::cudart_static>)
    string(APPEND KINGLET_DEPENDENCIES "find_dependency(CUDAToolkit)\n")
    list(APPEND needed cudart_static dl rt)
    set(KINGLET_PC_LIBS "-L${CUDAToolkit_LIBRARY_DIR}")
  endif()
  foreach(library ${needed})
    target_link_libraries(kinglet INTERFACE $<INSTALL_INTERFACE:${library}>)
    string(APPEND KINGLET_PC_LIBS " -l${library}")
  endforeach()
  string(APPEND KINGLET_PC_LIBS " ${CMAKE_THREAD_LIBS_INIT}")
endif()

# Hidden visibility covers our own sources; the linker script also covers the standard library's templates.
include(CheckLinkerFlag)
set(export_map ${PROJECT_SOURCE_DIR}/cmake/kinglet.map)
check_linker_flag(CXX "LINKER:--version-script=${export_map}" KINGLET_LINKER_HAS_VERSION_SCRIPT)
if(BUILD_SHARED_LIBS AND KINGLET_LINKER_HAS_VERSION_SCRIPT)
  target_link_options(kinglet PRIVATE "LINKER:--version-script=${export_map}")
  set_target_properties(kinglet PROPERTIES LINK_DEPENDS ${export_map})
endif()
