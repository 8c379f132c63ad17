# Turns the installed files into those of a package. CPack runs it before packing; `cmake --install` does not.
set(ENV{DESTDIR} "")  # otherwise file(INSTALL) would prefix its paths with it again
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(doc ${root}/usr/share/doc/rlock)
set(from ${CPACK_RLOCK_SOURCE}/packaging)

# run(COMMAND...): fails if the command does.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# compress(FILE): replaces it by FILE.gz, without name and time.
function(compress file)
  run(gzip -9nf ${file})
endfunction()

set(ENV{TZ} UTC)
set(epoch $ENV{SOURCE_DATE_EPOCH})
if(NOT epoch)
  string(TIMESTAMP epoch %s)
endif()

# The host's configuration file, with comments only.
file(INSTALL ${from}/rlock.toml DESTINATION ${root}/etc/rlock)

file(GLOB pages ${root}/usr/share/man/man*/*)
foreach(page ${pages})
  compress(${page})
endforeach()

if(CPACK_RLOCK_STATIC)
  execute_process(COMMAND sh ${from}/linked --notices ${CPACK_RLOCK_BUILD}
    OUTPUT_FILE ${doc}/THIRD-PARTY.txt COMMAND_ERROR_IS_FATAL ANY)
  compress(${doc}/THIRD-PARTY.txt)
  set(static_comment "
Comment: The program is linked statically. The file THIRD-PARTY.txt.gz beside
 this one has the copyright notices and licences of all libraries in it.")
endif()

if(CPACK_GENERATOR STREQUAL DEB)
  file(REMOVE_RECURSE ${root}/usr/libexec)  # the distribution's server gets its security updates by itself
  file(REMOVE ${doc}/LICENSE)  # the file copyright has it
  file(READ ${from}/debian/copyright copyright)
  string(REPLACE "@HOMEPAGE@" "${CPACK_PACKAGE_HOMEPAGE_URL}${static_comment}" copyright "${copyright}")
  file(WRITE ${doc}/copyright "${copyright}")
  file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
  # Debian's zsh uses this folder instead of site-functions.
  file(RENAME ${root}/usr/share/zsh/site-functions ${root}/usr/share/zsh/vendor-completions)
  execute_process(COMMAND date -R -u -d @${epoch} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(WRITE ${doc}/changelog.Debian "rlock (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}: /usr/share/doc/rlock/changelog.gz lists the changes.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  compress(${doc}/changelog)
  compress(${doc}/changelog.Debian)
  if(CPACK_RLOCK_STATIC)
    file(INSTALL ${from}/static-deb/lintian-overrides DESTINATION ${root}/usr/share/lintian/overrides RENAME rlock)
  endif()
endif()

# Make the result independent of the builder's umask and of the time.
run(chmod -R u=rwX,go=rX ${root})
run(find ${root} -exec touch -h -d @${epoch} {} +)
