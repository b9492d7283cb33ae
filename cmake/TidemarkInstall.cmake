# Installs the library, its headers and a package file, so that find_package(tidemark) gives tidemark::tidemark.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS tidemark EXPORT tidemarkTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY tidemark/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tidemark FILES_MATCHING PATTERN "*.h")
if(TIDEMARK_BUILD_TOOLS)
  install(TARGETS tidemark_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(tidemark_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tidemark)
install(EXPORT tidemarkTargets NAMESPACE tidemark:: DESTINATION ${tidemark_package_dir})
configure_package_config_file(cmake/tidemarkConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/cmake/tidemarkConfig.cmake INSTALL_DESTINATION ${tidemark_package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/cmake/tidemarkConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/cmake/tidemarkConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/cmake/tidemarkConfigVersion.cmake
  DESTINATION ${tidemark_package_dir})
