# Installs the build into a fresh prefix, then configures, builds and runs tests/package against it as a user would.
# cmake -D BUILD_DIR=… -D SOURCE_DIR=… -D CXX=… -P package_test.cmake
set(prefix ${BUILD_DIR}/package_test/prefix)
set(consumer ${BUILD_DIR}/package_test/consumer)
file(REMOVE_RECURSE ${BUILD_DIR}/package_test)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/package -B ${consumer} -G Ninja
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_CXX_FLAGS=-Werror)
run(${CMAKE_COMMAND} --build ${consumer})
run(${consumer}/consumer)
