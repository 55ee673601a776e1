# cmake -P run_sample.cmake PROGRAM PATTERN...: fails unless the program ends with status 0 and what
# it prints, errors first, matches every pattern.
set(program ${CMAKE_ARGV3})
execute_process(COMMAND ${program} OUTPUT_VARIABLE output ERROR_VARIABLE errors
                RESULT_VARIABLE status)
string(PREPEND output "${errors}")
message("${output}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${program} ended with status ${status}")
endif()
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 4 ${last})
  if(NOT output MATCHES "${CMAKE_ARGV${i}}")
    message(FATAL_ERROR "nothing in the output matches ${CMAKE_ARGV${i}}")
  endif()
endforeach()
