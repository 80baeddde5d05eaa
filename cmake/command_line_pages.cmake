# Manual pages and completions, as the built program prints them, installed where shells and man look.
include(GNUInstallDirs)

set(pages ${CMAKE_CURRENT_BINARY_DIR}/pages)
add_custom_command(OUTPUT ${pages}/stamp
  COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}/man1 ${pages}/bash ${pages}/zsh ${pages}/fish
  COMMAND laneshift man --directory ${pages}/man1
  COMMAND laneshift completion bash > ${pages}/bash/laneshift
  COMMAND laneshift completion zsh > ${pages}/zsh/_laneshift
  COMMAND laneshift completion fish > ${pages}/fish/laneshift.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${pages}/stamp
  DEPENDS laneshift
  COMMENT "Manual pages and completions of laneshift"
  VERBATIM)
add_custom_target(laneshift_pages ALL DEPENDS ${pages}/stamp)

install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${pages}/bash/laneshift DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${pages}/zsh/_laneshift DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${pages}/fish/laneshift.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
