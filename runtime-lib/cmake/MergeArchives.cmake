# mcc_merge_archives(NAME OUTPUT FILE TARGETS ... LIBRARIES ...): a custom target that puts the objects of static
# libraries, mcc's and the compiler's own, into one archive. `ar -M` keeps members of equal names apart.
# Its script language knows neither spaces nor '+' in names, so that everything is linked into one folder first.
function(mcc_merge_archives name)
  cmake_parse_arguments(ARG "" "OUTPUT" "TARGETS;LIBRARIES" ${ARGN})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name}.parts)
  file(MAKE_DIRECTORY ${folder})
  set(script "create merged.a\n")
  set(links)
  foreach(target ${ARG_TARGETS})
    list(APPEND links COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:${target}> ${target}.a)
    string(APPEND script "addlib ${target}.a\n")
  endforeach()
  foreach(library ${ARG_LIBRARIES})
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${library}
      OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    if(NOT IS_ABSOLUTE ${path})
      message(FATAL_ERROR "${library} is not where ${CMAKE_CXX_COMPILER} looks for libraries; scripts/setup.sh installs it")
    endif()
    string(MAKE_C_IDENTIFIER ${library} plain)
    list(APPEND links COMMAND ${CMAKE_COMMAND} -E create_symlink ${path} ${plain}.a)
    string(APPEND script "addlib ${plain}.a\n")
  endforeach()
  file(GENERATE OUTPUT ${folder}/merge.mri CONTENT "${script}save\nend\n")
  get_filename_component(outputFolder ${ARG_OUTPUT} DIRECTORY)
  add_custom_command(OUTPUT ${ARG_OUTPUT}
    ${links}
    COMMAND ${CMAKE_AR} -M < merge.mri
    COMMAND ${CMAKE_COMMAND} -E make_directory ${outputFolder}
    COMMAND ${CMAKE_COMMAND} -E rename merged.a ${ARG_OUTPUT}
    DEPENDS ${ARG_TARGETS} ${folder}/merge.mri
    WORKING_DIRECTORY ${folder}
    COMMENT "Merging ${name}"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${ARG_OUTPUT})
endfunction()
