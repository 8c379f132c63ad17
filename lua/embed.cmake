# cmake -DOUT=dir -P embed.cmake
# Writes each verb for each layout as the server gets it, dir/<verb>_<layout>.lua; dir/scripts.h, a table of all; and
# dir/timing.h, the constants of part/timing.lua.
#
#   --- include part/queue    becomes that file, where it is named first. `layout` is the file of the layout
#   --- if plain … --- end    stays for that layout
#
# A function, or a local value of one line, that nothing below it names is left out; so are comments and indentation. What
# is left is a third, and each script carries only what it uses.
cmake_minimum_required(VERSION 3.25)
set(LAYOUTS plain read_write semaphore)
set(VERBS acquire renew release force_unlock inspect)
set(LUA "${CMAKE_CURRENT_LIST_DIR}")

function(with_includes text layout out)
  while(text MATCHES "--- include ([a-z_/]+)\n")
    set(line "${CMAKE_MATCH_0}")
    set(part "${CMAKE_MATCH_1}")
    if(part STREQUAL "layout")
      set(part "layout/${layout}")
    endif()
    file(READ "${LUA}/${part}.lua" included)
    string(FIND "${text}" "${line}" at)
    string(LENGTH "${line}" length)
    math(EXPR behind "${at} + ${length}")
    string(SUBSTRING "${text}" 0 ${at} before)
    string(SUBSTRING "${text}" ${behind} -1 after)
    string(REPLACE "${line}" "" after "${after}")
    # The parts that a part includes stand in front of it, so that its line may be one that stands further down as well.
    set(text "${before}${included}${after}")
    list(FIND seen "${part}" known)
    if(NOT known EQUAL -1)
      set(text "${before}${after}")
    endif()
    list(APPEND seen "${part}")
  endwhile()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(of_layout text layout out)
  while(text MATCHES "--- if ([a-z_]+)\n")
    set(line "${CMAKE_MATCH_0}")
    set(wanted "${CMAKE_MATCH_1}")
    string(FIND "${text}" "${line}" begin)
    string(SUBSTRING "${text}" 0 ${begin} before)
    string(SUBSTRING "${text}" ${begin} -1 after)
    string(FIND "${after}" "--- end\n" end)
    string(LENGTH "${line}" length)
    math(EXPR inside "${end} - ${length}")
    math(EXPR behind "${end} + 8")
    string(SUBSTRING "${after}" ${length} ${inside} block)
    string(SUBSTRING "${after}" ${behind} -1 after)
    if(NOT wanted STREQUAL layout)
      set(block "")
    endif()
    set(text "${before}${block}${after}")
  endwhile()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# From the end backwards, so that what only an unused function names is seen to be unused.
function(only_what_is_used text out)
  set(used "")
  while(TRUE)
    string(FIND "${text}" "\nlocal " at REVERSE)
    if(at EQUAL -1)
      break()
    endif()
    string(SUBSTRING "${text}" ${at} -1 block)
    string(SUBSTRING "${text}" 0 ${at} text)
    set(length 0)
    if(block MATCHES "^\nlocal function ([A-Za-z_]+)")
      set(name "${CMAKE_MATCH_1}")
      string(FIND "${block}\n" "\nend\n" length)
      math(EXPR length "${length} + 4")
    elseif("${block}\n." MATCHES "^(\nlocal ([A-Za-z_]+) = [^\n]*)\n[^ ]")
      set(name "${CMAKE_MATCH_2}")
      string(LENGTH "${CMAKE_MATCH_1}" length)
    endif()
    string(SUBSTRING "${block}" ${length} -1 behind)
    string(SUBSTRING "${block}" 0 ${length} definition)
    set(used "${behind}${used}")
    if(used MATCHES "[^A-Za-z_.']${name}[^A-Za-z_']")
      set(used "${definition}${used}")
    endif()
  endwhile()
  set(${out} "${text}${used}" PARENT_SCOPE)
endfunction()

set(header "#pragma once
#include <chrono>
namespace rlock::lua {
")
file(STRINGS "${LUA}/part/timing.lua" times REGEX "^local k")
foreach(time ${times})
  string(REGEX REPLACE "local (k[A-Za-z]+) = ([0-9]+)" "inline constexpr std::chrono::milliseconds \\1{\\2};" time "${time}")
  string(APPEND header "${time}\n")
endforeach()
file(WRITE "${OUT}/timing.h" "${header}}\n")

set(header "#pragma once
#include <string_view>
namespace rlock::lua {
struct Script {
  std::string_view text, sha1;
};
inline constexpr Script kScripts[][3] = {
")
foreach(verb ${VERBS})
  string(APPEND header "{\n")
  foreach(layout ${LAYOUTS})
    file(READ "${LUA}/verb/${verb}.lua" text)
    with_includes("${text}" ${layout} text)
    of_layout("${text}" ${layout} text)
    string(REGEX REPLACE "\n *--[^\n]*" "" text "\n${text}")
    string(REGEX REPLACE "  --[^\n]*" "" text "${text}")
    string(REGEX REPLACE "\n\n+" "\n" text "${text}")
    only_what_is_used("${text}" text)
    string(REGEX REPLACE "\n[\n ]+" "\n" text "${text}")
    # Keys of other holders and waiters are known only here; Dragonfly wants to be told so.
    string(REGEX REPLACE "^\n" "--!df flags=allow-undeclared-keys\n" text "${text}")
    if(text MATCHES "\\)LUA\"")
      message(FATAL_ERROR "${verb} holds the text that ends a raw string: )LUA\"")
    endif()
    file(WRITE "${OUT}/${verb}_${layout}.lua" "${text}")
    string(SHA1 sha1 "${text}")
    string(APPEND header "{R\"LUA(${text})LUA\", \"${sha1}\"},\n")
  endforeach()
  string(APPEND header "},\n")
endforeach()
string(APPEND header "};\n}\n")
file(WRITE "${OUT}/scripts.h" "${header}")
