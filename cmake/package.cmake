# What a user of the library gets: the shared library `laneshift`, which carries LLVM and everything else inside, the
# headers of include/laneshift, the program, the notices of what is linked in, and a CMake package and pkg-config file:
#
#   find_package(laneshift 0.1 CONFIG REQUIRED)
#   target_link_libraries(app PRIVATE laneshift::laneshift)        # or laneshift::laneshift_static
#
#   cc app.c $(pkg-config --cflags --libs laneshift)
#
# The same target exists in this tree for add_subdirectory() and FetchContent. An installed tree may be moved: nothing in
# it holds its own path. LANESHIFT_BUILD_STATIC adds liblaneshift.a. Debug symbols are split into .debug next to the files.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The directories whose libraries define a symbol of include/laneshift, and so must go in whole.
set(exporting)
set(archives)
foreach(directory base ir runtime)
  if(TARGET laneshift_${directory})
    list(APPEND exporting laneshift_${directory})
    string(APPEND archives " $<TARGET_FILE:laneshift_${directory}>")
  endif()
endforeach()

# CMake wants a source; everything comes out of the directories' libraries.
set(laneshift_empty_source ${CMAKE_CURRENT_BINARY_DIR}/liblaneshift.cc)
file(CONFIGURE OUTPUT ${laneshift_empty_source} CONTENT "// liblaneshift has no code itself.\n")
add_library(laneshift_shared SHARED ${laneshift_empty_source})
set_target_properties(laneshift_shared PROPERTIES
  OUTPUT_NAME laneshift
  EXPORT_NAME laneshift
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/exports.map)
target_link_libraries(laneshift_shared PRIVATE ${exporting})
# Once whole, in front; what else they need is then taken from the libraries in the usual way.
target_link_options(laneshift_shared PRIVATE
  "SHELL:-Wl,--whole-archive${archives} -Wl,--no-whole-archive"
  -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/exports.map -Wl,--gc-sections -Wl,--as-needed)
target_include_directories(laneshift_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(laneshift_shared INTERFACE cxx_std_20)
add_library(laneshift::laneshift ALIAS laneshift_shared)
if(LANESHIFT_BUILD_STATIC)
  add_subdirectory(cmake/static)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/laneshift)
install(TARGETS laneshift_shared EXPORT laneshift LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT laneshift NAMESPACE laneshift:: FILE laneshiftTargets.cmake DESTINATION ${package_dir})
install(DIRECTORY include/laneshift DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/laneshiftConfig.cmake.in laneshiftConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
# Before 1.0 a minor version may break the interface.
write_basic_package_version_file(laneshiftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# From the directory of the .pc file back to the prefix.
file(RELATIVE_PATH PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/laneshift.pc.in laneshift.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/laneshift.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(FILES ${CMAKE_CURRENT_BINARY_DIR}/laneshiftConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/laneshiftConfigVersion.cmake
  DESTINATION ${package_dir})

# Last, when all files are in place.
configure_file(${CMAKE_CURRENT_LIST_DIR}/split_debug.cmake.in split_debug.cmake @ONLY)
install(SCRIPT ${CMAKE_CURRENT_BINARY_DIR}/split_debug.cmake)
