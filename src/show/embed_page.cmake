# cmake -DOUT=dir -P embed_page.cmake
# Writes dir/embedded.h: page.html in three parts, between which the table and the data come. Its Content-Security-Policy
# gets the hashes of its style and its script.
cmake_minimum_required(VERSION 3.25)
set(DIGITS ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)

# Base64 (RFC 4648, section 4) of the 32 bytes of a SHA-256: 6 hexadecimal digits are 4 of its digits.
function(base64 hex out)
  set(text "")
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}00" ${at} 6 six)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${six} >> ${shift}) & 63")
      string(SUBSTRING "${DIGITS}" ${digit} 1 digit)
      string(APPEND text ${digit})
    endforeach()
  endforeach()
  string(REGEX REPLACE "A$" "=" text "${text}") # 32 bytes are 43 digits
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

file(READ "${CMAKE_CURRENT_LIST_DIR}/page.html" page)
foreach(element style script)
  string(FIND "${page}" "<${element}>" start)
  string(FIND "${page}" "</${element}>" end REVERSE)
  string(LENGTH "<${element}>" length)
  math(EXPR start "${start} + ${length}")
  math(EXPR length "${end} - ${start}")
  string(SUBSTRING "${page}" ${start} ${length} text)
  string(SHA256 hash "${text}")
  base64(${hash} hash)
  string(TOUPPER "@${element}_HASH@" placeholder)
  string(REPLACE "${placeholder}" "sha256-${hash}" page "${page}")
endforeach()
foreach(placeholder @TABLE@ @DATA@)
  string(REPLACE "${placeholder}" ")~\",\nR\"~(" page "${page}")
endforeach()
file(WRITE "${OUT}/embedded.h" "#pragma once\n#include <string_view>\nnamespace rlock::cli {\n"
  "inline constexpr std::string_view kPage[] = {R\"~(${page})~\"};\nstatic_assert(std::size(kPage) == 3);\n}\n")
