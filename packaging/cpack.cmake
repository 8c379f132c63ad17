# Packages: `cpack -G DEB` and `cpack -G RPM` in a build folder. packaging/release creates both.

# For packaging/linked, unless it reads the folder of packaging/musl.
if(RLOCK_STATIC AND NOT RLOCK_PARTS)
  target_link_options(rlock PRIVATE LINKER:-Map=rlock.map)
endif()

# For local: addresses, which look for it there.
if(RLOCK_PARTS)
  install(PROGRAMS ${RLOCK_PARTS}/libexec/redis-server DESTINATION libexec/rlock)
endif()

# The only place for these addresses; packages take them from here.
set(RLOCK_MAINTAINER "The rlock authors <rlock@example.org>" CACHE STRING "Name and address, for packages")
set(RLOCK_HOMEPAGE "https://example.org/rlock" CACHE STRING "Where the source is, for packages")
set(RLOCK_PACKAGE_VERSION ${PROJECT_VERSION} CACHE STRING "The packages' version, such as 1.2.3~preview")

set(CPACK_PACKAGE_NAME rlock)
set(CPACK_PACKAGE_VENDOR "The rlock authors")
set(CPACK_PACKAGE_CONTACT "${RLOCK_MAINTAINER}")
set(CPACK_PACKAGE_HOMEPAGE_URL "${RLOCK_HOMEPAGE}")
set(CPACK_PACKAGE_VERSION ${RLOCK_PACKAGE_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run a command under a lock shared by many hosts")
set(CPACK_PACKAGE_DESCRIPTION
"rlock takes a lock on a Redis server, renews it while the command runs, and
releases it once the command and everything it started have ended. If it
cannot keep the lock, it stops the command before anyone else can hold it.
.
The lock is the one that Redisson's RLock uses, so shell and Java can share it.
The program is one static file.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/stage.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# For stage.cmake.
set(CPACK_RLOCK_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_RLOCK_BUILD ${PROJECT_BINARY_DIR})
set(CPACK_RLOCK_STATIC ${RLOCK_STATIC})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# For local: addresses, because this package has no server (stage.cmake).
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "redis-server | valkey-server")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/static-deb/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
if(NOT RLOCK_STATIC)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_GROUP Applications/System)
set(CPACK_PACKAGE_RELOCATABLE OFF)  # without this, the next line has no effect
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
string(REPLACE "\n.\n" "\n\n" CPACK_RPM_PACKAGE_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_RPM_USER_FILELIST "%config(noreplace) /etc/rlock/rlock.toml")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
  /etc /usr/share/man /usr/share/man/man1 /usr/share/man/man5 /usr/share/man/man7
  /usr/share/bash-completion /usr/share/bash-completion/completions
  /usr/share/zsh /usr/share/zsh/site-functions /usr/share/zsh/vendor-completions
  /usr/share/fish /usr/share/fish/completions /usr/share/fish/vendor_completions.d)
if(RLOCK_STATIC)
  set(CPACK_RPM_PACKAGE_AUTOREQ no)
endif()
# For reproducible packages: use the time $SOURCE_DATE_EPOCH, and no host name.
set(CPACK_RPM_SPEC_MORE_DEFINE "%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1
%define _buildhost localhost
%define _build_id_links none
%define __os_install_post %{nil}")

include(CPack)
