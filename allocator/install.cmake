# What `make install` puts under the prefix: the libraries, the headers, and what CMake and pkg-config need to
# find them. All paths in it are relative, so that the prefix may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(EBB_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ebb)
set(EBB_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH EBB_PC_TO_PREFIX /prefix/${EBB_PC_DIR} /prefix)
string(REGEX REPLACE "/$" "" EBB_PC_TO_PREFIX "${EBB_PC_TO_PREFIX}")

install(TARGETS ebb_shared ebb_static EXPORT ebbTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET ebb_secure)
  install(TARGETS ebb_secure LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/include/ebb DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING
    PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT ebbTargets NAMESPACE ebb:: DESTINATION ${EBB_CMAKE_DIR})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/package/ebbConfig.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/ebbConfig.cmake INSTALL_DESTINATION ${EBB_CMAKE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ebbConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ebbConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/ebbConfigVersion.cmake
    DESTINATION ${EBB_CMAKE_DIR})

foreach(name ebb ebb-static)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/package/${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${EBB_PC_DIR})
endforeach()
