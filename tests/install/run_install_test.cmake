# Arguments: BUILD_DIR, SOURCE_DIR, WORK_DIR, GENERATOR, CXX, SANITIZE, and SUBDIRECTORY for the second way.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed (${result}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
set(flags -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug)  # quick to compile
if(SANITIZE)
  list(APPEND flags "-DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE}")
endif()
if(SUBDIRECTORY)
  list(APPEND flags -DTIDEMARK_SUBDIRECTORY=${SOURCE_DIR})
else()
  run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/first)
  # An installed copy must work from wherever it was moved to.
  file(RENAME ${WORK_DIR}/first ${WORK_DIR}/prefix)
  list(APPEND flags -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
endif()
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install/consumer -B ${WORK_DIR}/build ${flags})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer ${SOURCE_DIR}/examples/steps/two_layer_mlp.step.jsonl)
# The example has four module calls: the root and its three layers.
if(NOT output MATCHES "4 calls")
  message(FATAL_ERROR "the consumer said: ${output}")
endif()
