# cmake -DOUT=dir -P embed.cmake
# Writes dir/embedded.h: page.css and page.js as text without their comments, and the hashes by which a
# Content-Security-Policy allows them.
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

set(header "#pragma once\n#include <string_view>\nnamespace rlock::cli::page {\n")
foreach(file css js)
  file(READ "${CMAKE_CURRENT_LIST_DIR}/page.${file}" text)
  if(file STREQUAL css)
    string(REGEX REPLACE "/\\*[^*]*\\*/\n?" "" text "${text}")
  else()
    string(REGEX REPLACE "(^|\n)//[^\n]*" "" text "${text}")
  endif()
  string(SHA256 hash "${text}")
  base64(${hash} hash)
  string(TOUPPER ${file} name)
  string(APPEND header "inline constexpr std::string_view k${name} = R\"~(${text})~\";\n"
    "inline constexpr std::string_view k${name}Hash = \"sha256-${hash}\";\n")
endforeach()
file(WRITE "${OUT}/embedded.h" "${header}}\n")
