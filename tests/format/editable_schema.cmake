# Headers that tests can edit: flatc generates its object API from a copy of the schema. The copy has
# a namespace of its own, kinglet::editable, because no program may contain two different definitions
# of kinglet::schema::Model.
add_library(kinglet_editable_schema INTERFACE)
target_include_directories(kinglet_editable_schema SYSTEM INTERFACE
  ${CMAKE_CURRENT_BINARY_DIR}/generated ${KINGLET_FLATBUFFERS})
set(schema ${PROJECT_SOURCE_DIR}/format/model.fbs)
set(editable ${CMAKE_CURRENT_BINARY_DIR}/editable_model.fbs)
set(folder ${CMAKE_CURRENT_BINARY_DIR}/generated/tests/format)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${schema})
file(READ ${schema} text)
string(REPLACE "namespace kinglet.schema;" "namespace kinglet.editable;" text "${text}")
file(CONFIGURE OUTPUT ${editable} CONTENT "${text}" @ONLY)
add_custom_command(
  OUTPUT ${folder}/editable_model_generated.h
  COMMAND ${KINGLET_FLATC} --cpp --cpp-std c++17 --scoped-enums --gen-object-api --reflect-names
          --warnings-as-errors -o ${folder} ${editable}
  DEPENDS ${editable} ${KINGLET_FLATC}
  COMMENT "Generating tests/format/editable_model_generated.h"
  VERBATIM)
add_custom_target(kinglet_editable_schema_header DEPENDS ${folder}/editable_model_generated.h)
add_dependencies(kinglet_editable_schema kinglet_editable_schema_header)
