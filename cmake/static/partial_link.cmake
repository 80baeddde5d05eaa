# cmake -D OBJCOPY=… -D CXX=… -D OUT=liblaneshift.o -P partial_link.cmake -- link line
# Links the archives of a link line into one object and hides all symbols but those of include/laneshift. Shared
# libraries and flags of a final link are left to that: libstdc++, libm, libdl, zlib and zstd.
set(inputs)
set(options FALSE)
foreach(i RANGE ${CMAKE_ARGC})
  set(word "${CMAKE_ARGV${i}}")
  if(word STREQUAL "--")
    set(options TRUE)
  elseif(options AND word MATCHES "\\.(a|o)$|^--(no-)?whole-archive$")
    if(word MATCHES "^--")
      set(word "-Wl,${word}")
    endif()
    list(APPEND inputs ${word})
  endif()
endforeach()
# Groups of COMDAT sections are resolved here: a local group must not be merged with the application's own.
execute_process(COMMAND ${CXX} -r -nostdlib -no-pie -Wl,--force-group-allocation -o ${OUT} ${inputs}
  COMMAND_ERROR_IS_FATAL ANY)
# The mangled names of exports.map: laneshift_* of C, and the names directly in namespace laneshift.
set(interface)
foreach(prefix _ZN _ZNK _ZTIN _ZTSN _ZTVN)
  foreach(digits [0-9] [0-9][0-9])
    list(APPEND interface "--keep-global-symbol=${prefix}9laneshift${digits}[A-Z]*")
  endforeach()
endforeach()
execute_process(COMMAND ${OBJCOPY} --wildcard "--keep-global-symbol=laneshift_*" ${interface} ${OUT}
  COMMAND_ERROR_IS_FATAL ANY)
