# cmake -DOUT=dir -P embed.cmake
# Joins the files of this folder and of features/, in the order of their numbers, to the script as a server gets it,
# dir/script.lua: without comments and indentation. For C++, dir/script.h: the script, its SHA1, and the names of fields that
# 01_request.lua lists; and dir/names.h, which is only written if it changes: times, companions, and the texts of 07_marks.lua.
cmake_minimum_required(VERSION 3.25)
file(GLOB files "${CMAKE_CURRENT_LIST_DIR}/[0-9]*.lua" "${CMAKE_CURRENT_LIST_DIR}/features/[0-9]*.lua")
list(SORT files COMPARE FILE_BASENAME)
set(text "\n")
foreach(file ${files})
  file(READ "${file}" one)
  string(APPEND text "${one}")
endforeach()

string(REGEX MATCHALL "\nlocal k[A-Za-z]+ = '[a-z_:]+:' +-- [a-z-]+:" lines "${text}")
string(REGEX REPLACE "\nlocal (k[A-Za-z]+) = '([a-z_:]+):' +-- ([a-z-]+):"
  "inline constexpr Companion \\1{\"\\2\", \"\\3\"};\n" companions "${lines}")
string(REPLACE ";\n;" ";\n" companions "${companions}")
string(REGEX REPLACE "\nlocal (k[A-Za-z]+) = [^;]*" "\\1" all "${lines}")
string(REPLACE ";" ", " all "${all}")
string(REGEX MATCH "\nlocal kEpoch = '([a-z:]+)'" epoch "${text}")
set(epoch "${CMAKE_MATCH_1}")

string(REGEX MATCH "names of all fields[^:]*:\n([a-z_\n -]+)\n\n" names "${text}")
string(REGEX MATCHALL "[a-z_]+" names "${CMAKE_MATCH_1}")
list(TRANSFORM names REPLACE "(.+)" "inline constexpr std::string_view \\1 = \"\\1\";\n")
string(REPLACE ";\n;" ";\n" names "${names}")

string(REGEX MATCH "\nlocal kSelfTexts = {([a-z0-9_', ]+)}" texts "${text}")
string(REPLACE "'" "" texts "${CMAKE_MATCH_1}")
string(REGEX REPLACE "([a-z0-9_]+)" "{\"\\1\", &SelfTexts::\\1}" table "${texts}")

string(REPLACE "\n" "\n\n" spread "${text}")
string(REGEX MATCHALL "\nlocal k[A-Za-z]+ = [0-9]+\n" lines "${spread}")
string(REGEX REPLACE "\nlocal (k[A-Za-z]+) = ([0-9]+)\n" "inline constexpr std::chrono::milliseconds \\1{\\2};" times "${lines}")
string(REPLACE ";;" ";\n" times "${times}")

string(REGEX REPLACE "\n *--[^\n]*" "" text "${text}")
string(REGEX REPLACE "  +--[^\n]*" "" text "${text}")
string(REGEX REPLACE "\n[\n ]*" "\n" text "${text}")
# Dragonfly must be told that scripts find the keys of other holders and waiters themselves.
string(REGEX REPLACE "^\n" "--!df flags=allow-undeclared-keys\n" text "${text}")
file(WRITE "${OUT}/script.lua" "${text}")
string(SHA1 sha1 "${text}")
file(WRITE "${OUT}/script.h" "#pragma once
#include <string_view>
namespace rlock::lua {
inline constexpr std::string_view kScript = R\"LUA(${text})LUA\", kSha1 = \"${sha1}\";
namespace field {
${names}}
}
")
file(CONFIGURE OUTPUT "${OUT}/names.h" @ONLY CONTENT "#pragma once
#include <chrono>
#include <string>
namespace rlock::lua {
struct Companion {
  std::string_view word, type;
  bool operator==(const Companion&) const = default;
};
${companions}inline constexpr Companion kCompanions[] = {${all}};
inline constexpr std::string_view kEpoch = \"${epoch}\";
${times}
struct SelfTexts {
  std::string ${texts};
};
struct SelfText {
  const char* name;
  std::string SelfTexts::* text;
};
inline constexpr SelfText kSelfTexts[] = {${table}};
}
")
