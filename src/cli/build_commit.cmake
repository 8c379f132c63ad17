# Writes OUT, the definition of build_commit(): the commit of SOURCE, if that is a clone and git is there. Only when it has
# changed, so that nothing is built for it.
set(commit "")
find_package(Git QUIET)
if(GIT_FOUND AND EXISTS ${SOURCE}/.git)
  execute_process(
    COMMAND ${GIT_EXECUTABLE} --git-dir=${SOURCE}/.git --work-tree=${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
#include "cli/commands.h"
const char* rlock::cli::build_commit() { return "@commit@"; }
]])
