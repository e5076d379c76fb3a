# The Debian package, by CPack: `tools/dev package`.

# The operator's side of the file system: only in a package, whose prefix is /usr.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  install(FILES default DESTINATION /etc/default RENAME edgeshed)
  # Empty: the configuration is the operator's to make.
  install(DIRECTORY DESTINATION /etc/edgeshed)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME edgeshed)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
# Not what the umask of the one who builds says.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(EDGESHED_MAINTAINER "EdgeShed maintainers <edgeshed@localhost>" CACHE STRING
  "Maintainer field of the package: name <address>")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${EDGESHED_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "load shedding for game servers in the packet path")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Keeps a Linux game-server host useful under overload: XDP and TC programs
drop, thin or mark the least valuable game packets, and a daemon decides
every tick how far each shard steps down a fixed ladder.
.
Holds the command line, the daemon with its service, and the library for
game servers with its header.")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

# Libraries by what the programs are linked with; the rest is what the scripts run.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers")

set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_CURRENT_SOURCE_DIR}/deb/conffiles
  ${CMAKE_CURRENT_SOURCE_DIR}/deb/postinst
  ${CMAKE_CURRENT_SOURCE_DIR}/deb/prerm
  ${CMAKE_CURRENT_SOURCE_DIR}/deb/postrm
  ${CMAKE_CURRENT_SOURCE_DIR}/deb/triggers)

include(CPack)
