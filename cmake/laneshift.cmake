# Helpers of the build: one static library per directory, one test program per directory.

add_library(laneshift_flags INTERFACE)
target_compile_options(laneshift_flags INTERFACE -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor
  # Errors name files as the repository does, whatever machine built them.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_include_directories(laneshift_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++'s warning takes a file that is not the main one for a header.
  target_compile_options(laneshift_flags INTERFACE -Wno-subobject-linkage)
endif()
if(LANESHIFT_BUILD_FUZZERS)
  # Clang warns of what libstdc++ 12's std::stable_sort calls itself, and of shadows across the files of a unity build.
  target_compile_options(laneshift_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-deprecated-declarations -Wno-shadow)
  target_link_options(laneshift_flags INTERFACE -fsanitize=address,undefined)
endif()
if(LANESHIFT_SANITIZE)
  # g++ 12 warns of members of std::optional that it cannot follow through the sanitizers' own code, and without
  # optimisation of functions that end with LS_CHECK(false, …).
  target_compile_options(laneshift_flags INTERFACE -fsanitize=${LANESHIFT_SANITIZE} -fno-omit-frame-pointer
    -Wno-maybe-uninitialized -Wno-return-type)
  target_link_options(laneshift_flags INTERFACE -fsanitize=${LANESHIFT_SANITIZE})
endif()

# LANESHIFT_PLAIN: the libraries that are linked from LANESHIFT_PLAIN_BUILD, for TSan. What generates code starts no
# threads and keeps nothing between calls; TSan would make it several times slower and has nothing to find there.
if(LANESHIFT_PLAIN_BUILD)
  set(LANESHIFT_PLAIN target ir compiler)
  set(plain_libraries ${LANESHIFT_PLAIN})
  list(TRANSFORM plain_libraries PREPEND laneshift_)
  set(plain_archives ${LANESHIFT_PLAIN})
  list(TRANSFORM plain_archives REPLACE "(.+)" "${LANESHIFT_PLAIN_BUILD}/\\1/liblaneshift_\\1.a")
  add_custom_target(plain_libraries COMMAND ${CMAKE_COMMAND} --build ${LANESHIFT_PLAIN_BUILD} --target ${plain_libraries}
    BYPRODUCTS ${plain_archives} USES_TERMINAL)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/nothing.cc CONTENT "")
endif()

# laneshift_directory(NAME [USES library...] [PROGRAM main.cc] [ALONE file...]): every *.cc of this directory except
# tests becomes the library laneshift_NAME; every *_test.cc next to them becomes the program NAME_test, whose cases ctest runs
# one by one. A program's main file is not part of the library. Unity builds compile several files at once, which
# therefore must not use a name of an unnamed namespace twice; files that use the same names as a neighbour, because
# they are variants of it, are listed as ALONE and compiled separately.
function(laneshift_directory name)
  cmake_parse_arguments(ARG "" "PROGRAM" "USES;TEST_USES;ALONE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
  # A subdirectory with its own CMakeLists.txt is a separate library.
  file(GLOB nested CONFIGURE_DEPENDS */CMakeLists.txt)
  foreach(inner ${nested})
    get_filename_component(inner ${inner} DIRECTORY)
    list(FILTER sources EXCLUDE REGEX "^${inner}/")
  endforeach()
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(ARG_PROGRAM)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_PROGRAM})
  endif()
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(name IN_LIST LANESHIFT_PLAIN)
    add_library(laneshift_${name} STATIC ${CMAKE_BINARY_DIR}/nothing.cc)
    target_link_libraries(laneshift_${name} PUBLIC ${LANESHIFT_PLAIN_BUILD}/${name}/liblaneshift_${name}.a ${ARG_USES})
    add_dependencies(laneshift_${name} plain_libraries)
    set(own laneshift_${name})
  elseif(sources)
    add_library(laneshift_${name} STATIC ${sources})
    target_link_libraries(laneshift_${name} PUBLIC ${ARG_USES} PRIVATE laneshift_flags)
    set(own laneshift_${name})
  endif()
  if(tests AND LANESHIFT_BUILD_TESTS)
    laneshift_test(${name}_test SOURCES ${tests} USES ${own} ${ARG_USES} ${ARG_TEST_USES})
  endif()
endfunction()

# LLVM's linker takes a fifth of GNU ld's time for a program of tests, most of which is LLVM.
find_program(LANESHIFT_LLD ld.lld HINTS ${LLVM_TOOLS_BINARY_DIR})
if(LANESHIFT_LLD)
  cmake_path(GET LANESHIFT_LLD PARENT_PATH lld_directory)
  set(LANESHIFT_FAST_LINK -fuse-ld=lld -B${lld_directory})
endif()

# laneshift_test(PROGRAM SOURCES file... USES library...): a GoogleTest program, its cases known to ctest. Suites whose
# names begin with Gpu need one and have the label gpu, which `make check` leaves out.
function(laneshift_test program)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${program} ${ARG_SOURCES})
  target_link_libraries(${program} PRIVATE ${ARG_USES} laneshift_flags GTest::gtest_main)
  target_link_options(${program} PRIVATE ${LANESHIFT_FAST_LINK})
  # What tests compute themselves is little: they are compiled faster than they would run.
  target_compile_options(${program} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  target_compile_definitions(${program} PRIVATE LANESHIFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  include(GoogleTest)
  gtest_discover_tests(${program} TEST_FILTER -Gpu* DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
  gtest_discover_tests(${program} TEST_FILTER Gpu* DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS gpu)
endfunction()
