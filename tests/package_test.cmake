# Installs the build into a fresh prefix, moves that, and uses it as users would: tests/package by find_package, shared and,
# where it was built, static; consumer.c by pkg-config and a C compiler; the program, and the tuner that the library finds
# next to itself.
# cmake -D BUILD_DIR=… -D SOURCE_DIR=… -D CXX=… -D CC=… -D PKG_CONFIG=… -P package_test.cmake
set(work ${BUILD_DIR}/package_test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/installed)
file(RENAME ${work}/installed ${work}/moved)
set(prefix ${work}/moved)

# Nothing in the tree knows where it was installed, or built.
file(GLOB_RECURSE texts ${prefix}/*.cmake ${prefix}/*.pc ${prefix}/*.h ${prefix}/*.1)
foreach(text ${texts})
  file(READ ${text} content)
  string(FIND "${content}" "${work}/installed" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${text} names the place where it was installed")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/package -B ${work}/consumer -G Ninja
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_CXX_FLAGS=-Werror)
run(${CMAKE_COMMAND} --build ${work}/consumer)
run(${work}/consumer/consumer)
if(EXISTS ${work}/consumer/static_consumer)
  run(${work}/consumer/static_consumer)
endif()

file(GLOB_RECURSE pc ${prefix}/laneshift.pc)
get_filename_component(pc_directory ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_directory})
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs laneshift OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PKG_CONFIG} --variable=libdir laneshift OUTPUT_VARIABLE libdir OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${CC} -std=c99 -Wall -Wextra -Werror -pedantic ${SOURCE_DIR}/tests/package/consumer.c ${flags} -Wl,-rpath,${libdir}
  -o ${work}/c_consumer)
run(${work}/c_consumer)

# The program works from there, its symbols are next to it, and it is the one that the library measures with.
set(ENV{LANESHIFT_CACHE_DIR} ${work}/store)
run(${prefix}/bin/laneshift run gemm m=16 n=16 k=16 --device emulator --check)
foreach(symbols bin/.debug/laneshift.debug)
  if(NOT EXISTS ${prefix}/${symbols})
    message(FATAL_ERROR "${prefix}/${symbols} is missing")
  endif()
endforeach()
