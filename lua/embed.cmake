# cmake -DIN=x.lua -DOUT=dir/x.lua -DNAME=x -P embed.cmake
# Writes dir/x.lua: the script as the server gets it, with the part in place of the line that includes it; and
# dir/x.lua.h: a header with that text, byte for byte.
file(READ "${IN}" text)
if(text MATCHES "--- include ([a-z_]+\\.lua)\n")
  cmake_path(REPLACE_FILENAME IN "${CMAKE_MATCH_1}" OUTPUT_VARIABLE part)
  set(line "${CMAKE_MATCH_0}")
  file(READ "${part}" included)
  string(REPLACE "${line}" "${included}" text "${text}")
endif()
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
