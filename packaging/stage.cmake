# Turns what was installed into what a package holds; CPack runs it before it packs. `cmake --install` itself goes on to
# install plain files, for those who build rlock themselves.
set(ENV{DESTDIR} "")  # CPack's own, below which file(INSTALL) would put its files once more
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(doc ${root}/usr/share/doc/rlock)
set(from ${CPACK_RLOCK_SOURCE}/packaging)

# run(COMMAND...): ends the packing where the command fails.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# compress(FILE): FILE.gz in its place, without name and time.
function(compress file)
  run(gzip -9nf ${file})
endfunction()

set(ENV{TZ} UTC)
set(epoch $ENV{SOURCE_DATE_EPOCH})
if(NOT epoch)
  string(TIMESTAMP epoch %s)
endif()

# The host's settings: a file that changes nothing, where rlock looks for it.
file(INSTALL ${from}/rlock.toml DESTINATION ${root}/etc/rlock)

file(GLOB pages ${root}/usr/share/man/man*/*)
foreach(page ${pages})
  compress(${page})
endforeach()

if(CPACK_RLOCK_STATIC)
  execute_process(COMMAND sh ${from}/linked --notices ${CPACK_RLOCK_BUILD}
    OUTPUT_FILE ${doc}/THIRD-PARTY.txt COMMAND_ERROR_IS_FATAL ANY)
  compress(${doc}/THIRD-PARTY.txt)
endif()

if(CPACK_GENERATOR STREQUAL DEB)
  file(REMOVE ${doc}/LICENSE)  # the file copyright has it
  file(INSTALL ${from}/debian/copyright DESTINATION ${doc})
  file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
  # Debian's zsh looks there, and not in site-functions.
  file(RENAME ${root}/usr/share/zsh/site-functions ${root}/usr/share/zsh/vendor-completions)
  execute_process(COMMAND date -R -u -d @${epoch} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(WRITE ${doc}/changelog.Debian "rlock (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}: /usr/share/doc/rlock/changelog.gz tells what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  compress(${doc}/changelog)
  compress(${doc}/changelog.Debian)
  if(CPACK_RLOCK_STATIC)
    file(INSTALL ${from}/debian/lintian-overrides DESTINATION ${root}/usr/share/lintian/overrides RENAME rlock)
  endif()
endif()

# Nothing of the builder's umask, and of the time of the build.
run(chmod -R u=rwX,go=rX ${root})
run(find ${root} -exec touch -h -d @${epoch} {} +)
