# cmake -DIN=x.lua -DOUT=x.lua.h -DNAME=x -P embed.cmake: a header with the file's text, byte for byte.
file(READ "${IN}" text)
if(text MATCHES "\\)LUA\"")
  message(FATAL_ERROR "${IN} holds the text that ends a raw string: )LUA\"")
endif()
file(WRITE "${OUT}" "#pragma once
#include <string_view>
namespace rlock::lua {
inline constexpr std::string_view ${NAME} = R\"LUA(${text})LUA\";
}
")
