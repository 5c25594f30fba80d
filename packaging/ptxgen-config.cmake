# find_package(ptxgen) gives ptxgen::ptxgen: the folder of the headers, and the library with dlopen.
if(NOT TARGET ptxgen::ptxgen)
  get_filename_component(PTXGEN_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(ptxgen::ptxgen INTERFACE IMPORTED)
  set_target_properties(ptxgen::ptxgen PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${PTXGEN_PREFIX}/include"
    INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
endif()
