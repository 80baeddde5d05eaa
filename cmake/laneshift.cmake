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
  if(LANESHIFT_SANITIZE MATCHES undefined)
    # These checks stand at every access to an object and take two fifths of the time of a unit of ir/ to compile (30 s
    # with them, 18 s without). ASan stops at a null pointer and past an object's end as well; `make fuzz` has them all.
    target_compile_options(laneshift_flags INTERFACE -fno-sanitize=null,alignment,object-size,vptr)
  endif()
endif()

# laneshift_directory(NAME [USES library...] [PROGRAM main.cc] [ALONE file...]): every *.cc of this directory but the tests
# is the library laneshift_NAME; every *_test.cc beside them is the program NAME_test, whose cases ctest runs one by one.
# The file of a program's main stays out of the library. Unity builds compile several files at once, which therefore must
# not use a name of an unnamed namespace twice; files that name things as a neighbour does, because they are its twin,
# are compiled ALONE.
function(laneshift_directory name)
  cmake_parse_arguments(ARG "" "PROGRAM" "USES;TEST_USES;ALONE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
  # A subdirectory with its own CMakeLists.txt is a library of its own.
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
  if(sources)
    add_library(laneshift_${name} STATIC ${sources})
    target_link_libraries(laneshift_${name} PUBLIC ${ARG_USES} PRIVATE laneshift_flags)
    set(own laneshift_${name})
  endif()
  if(tests AND LANESHIFT_BUILD_TESTS)
    laneshift_test(${name}_test SOURCES ${tests} USES ${own} ${ARG_USES} ${ARG_TEST_USES})
  endif()
endfunction()

# laneshift_test(PROGRAM SOURCES file... USES library...): a GoogleTest program, its cases known to ctest. Suites whose
# names begin with Gpu need one and have the label gpu, which `make check` leaves out.
function(laneshift_test program)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${program} ${ARG_SOURCES})
  target_link_libraries(${program} PRIVATE ${ARG_USES} laneshift_flags GTest::gtest_main)
  # What tests compute themselves is little: they are compiled faster than they would run.
  target_compile_options(${program} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  target_compile_definitions(${program} PRIVATE LANESHIFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  include(GoogleTest)
  gtest_discover_tests(${program} TEST_FILTER -Gpu* DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
  gtest_discover_tests(${program} TEST_FILTER Gpu* DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS gpu)
endfunction()
