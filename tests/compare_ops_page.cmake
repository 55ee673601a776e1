# cmake -DTOOL=croton -DPAGE=docs/ops.md -P compare_ops_page.cmake
execute_process(COMMAND ${TOOL} ops --markdown OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
file(READ ${PAGE} page)
if(NOT printed STREQUAL page)
  message(FATAL_ERROR "${PAGE} is out of date: run `croton ops --markdown > docs/ops.md`")
endif()
