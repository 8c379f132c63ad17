# cmake -DIN=x.lua -DLAYOUT=plain -DOUT=dir/x_plain.lua -DNAME=x_plain -P embed.cmake
# Writes dir/x_plain.lua: the script as the server gets it, each part in place of the line that includes it, `layout`
# being the one of that name, without comments and indentation, which are half of what would be sent each time; and
# dir/x_plain.lua.h: a header with that text.
file(READ "${IN}" text)
while(text MATCHES "--- include ([a-z_]+)(\\.lua)?\n")
  set(line "${CMAKE_MATCH_0}")
  set(part "${CMAKE_MATCH_1}")
  if(part STREQUAL "layout")
    set(part "${LAYOUT}")
  endif()
  cmake_path(REPLACE_FILENAME IN "${part}.lua" OUTPUT_VARIABLE file)
  file(READ "${file}" included)
  string(REPLACE "${line}" "${included}" text "${text}")
endwhile()
string(REGEX REPLACE "\n *--[^\n]*" "" text "\n${text}")
string(REGEX REPLACE "  --[^\n]*" "" text "${text}")
string(REGEX REPLACE "\n[\n ]+" "\n" text "${text}")
# Who looks at the server's traffic shall see what it is.
string(REGEX REPLACE "^\n" "-- ${NAME}\n" text "${text}")
if(text MATCHES "\\)LUA\"")
  message(FATAL_ERROR "${IN} holds the text that ends a raw string: )LUA\"")
endif()
file(WRITE "${OUT}" "${text}")
file(WRITE "${OUT}.h" "#pragma once
#include <string_view>
namespace rlock::lua {
inline constexpr std::string_view ${NAME} = R\"LUA(${text})LUA\";
}
")
