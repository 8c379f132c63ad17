# cmake -DOUT=dir -P embed.cmake
# Writes each verb for each layout as the server gets it, dir/<verb>_<layout>.lua; dir/scripts.h, a table of all; and
# dir/timing.h, the constants of part/timing.lua.
#
#   --- include part/queue    becomes that file, where it is named first. `layout` is the file of the layout
#   --- if plain … --- end    stays for that layout; --- unless plain … --- end for the others
#
# Comments, indentation and what a script does not use are left out.
cmake_minimum_required(VERSION 3.25)
set(LAYOUTS plain read_write semaphore string)
set(VERBS acquire renew release force_unlock inspect raise)
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
  while(text MATCHES "--- (if|unless) ([a-z_]+)\n")
    set(line "${CMAKE_MATCH_0}")
    set(word "${CMAKE_MATCH_1}")
    set(wanted "${CMAKE_MATCH_2}")
    string(FIND "${text}" "${line}" begin)
    string(SUBSTRING "${text}" 0 ${begin} before)
    string(SUBSTRING "${text}" ${begin} -1 after)
    string(FIND "${after}" "--- end\n" end)
    string(LENGTH "${line}" length)
    math(EXPR inside "${end} - ${length}")
    math(EXPR behind "${end} + 8")
    string(SUBSTRING "${after}" ${length} ${inside} block)
    string(SUBSTRING "${after}" ${behind} -1 after)
    set(fitting unless)
    if(wanted STREQUAL layout)
      set(fitting if)
    endif()
    if(NOT word STREQUAL fitting)
      set(block "")
    endif()
    set(text "${before}${block}${after}")
  endwhile()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# A definition: a function, a constant, the server's time, the name of a key, or another name for a function. Each moves
# down to the first statement that needs it, so that a script that is done early has asked for no time and created no
# function that it did not use, and none goes where it is not used. They name only what stands above them, so one look
# from the last to the first finds all that a statement needs.
function(only_what_is_used text out)
  set(number 0)
  while(NOT text STREQUAL "")
    # A block: up to the next line that is not indented and does not end one.
    string(REGEX MATCH "^\n[^\n]*(\n( |end|else|until|\\})[^\n]*)*" block_${number} "${text}")
    string(LENGTH "${block_${number}}" length)
    string(SUBSTRING "${text}" ${length} -1 text)
    set(name_${number} "")
    if(block_${number} MATCHES "^\nlocal function ([A-Za-z_]+)")
      set(name_${number} "${CMAKE_MATCH_1}")
    elseif(block_${number} MATCHES "^\nlocal (k[A-Z][A-Za-z]*|time|now_us|now|micros) = [^\n]*$")
      set(name_${number} "${CMAKE_MATCH_1}")
    elseif(block_${number} MATCHES "^\nlocal ([a-z_]+) = ('[^']*' [.][.] )?[a-z_]+( [.][.] '[^']*')?$")
      set(name_${number} "${CMAKE_MATCH_1}")
    endif()
    math(EXPR number "${number} + 1")
  endwhile()
  set(result "")
  math(EXPR last "${number} - 1")
  foreach(i RANGE ${last})
    if(NOT name_${i} STREQUAL "")
      continue()
    endif()
    set(needed "${block_${i}}")
    foreach(j RANGE ${i} 0 -1)
      if(NOT name_${j} STREQUAL "" AND needed MATCHES "[^A-Za-z_.']${name_${j}}[^A-Za-z_']")
        set(needed "${block_${j}}${needed}")
        set(name_${j} "")
        set(block_${j} "")
      endif()
    endforeach()
    string(APPEND result "${needed}")
  endforeach()
  set(${out} "${result}\n" PARENT_SCOPE)
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

list(LENGTH LAYOUTS layouts)
set(header "#pragma once
#include <string_view>
namespace rlock::lua {
struct Script {
  std::string_view text, sha1;
};
inline constexpr Script kScripts[][${layouts}] = {
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
