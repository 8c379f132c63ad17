// SPDX-License-Identifier: MIT
#include "interpreter.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <lua.hpp>
#include <nlohmann/json.hpp>
#include <utility>

namespace rlock::model {
namespace {

using Kind = Reply::Kind;
using Json = nlohmann::json;

// The session of the script that runs.
Session* current = nullptr;

// Lua reports errors by longjmp(3), so nothing with a destructor may live where lua_error is called.

void set_field(lua_State* lua, const char* name, const std::string& text) {
  lua_newtable(lua);
  lua_pushlstring(lua, text.data(), text.size());
  lua_setfield(lua, -2, name);
}

void push(lua_State* lua, const Reply& reply) {
  switch (reply.kind) {
    case Kind::nil: lua_pushboolean(lua, 0); break;
    case Kind::integer: lua_pushnumber(lua, static_cast<lua_Number>(reply.integer)); break;
    case Kind::string: lua_pushlstring(lua, reply.text.data(), reply.text.size()); break;
    case Kind::status: set_field(lua, "ok", reply.text); break;
    case Kind::error: set_field(lua, "err", reply.text); break;
    case Kind::array:
      luaL_checkstack(lua, 3, "reply too deep");
      lua_createtable(lua, static_cast<int>(reply.elements.size()), 0);
      for (std::size_t i = 0; i < reply.elements.size(); ++i) {
        push(lua, reply.elements[i]);
        lua_rawseti(lua, -2, static_cast<int>(i + 1));
      }
      break;
  }
}

// False: neither a string nor a number.
bool read_words(lua_State* lua, std::vector<std::string>& words) {
  for (int i = 1; i <= lua_gettop(lua); ++i) {
    if (lua_type(lua, i) == LUA_TNUMBER) {
      char buffer[40];
      std::snprintf(buffer, sizeof buffer, "%.17g", lua_tonumber(lua, i));
      words.emplace_back(buffer);
    } else if (lua_type(lua, i) == LUA_TSTRING) {
      std::size_t size = 0;
      const char* text = lua_tolstring(lua, i, &size);
      words.emplace_back(text, size);
    } else {
      return false;
    }
  }
  return true;
}

// Leaves the reply on the stack. Returns whether it is an error.
bool execute(lua_State* lua) {
  std::vector<std::string> words;
  Reply reply{.kind = Kind::error};
  if (lua_gettop(lua) == 0) {
    reply.text = "ERR Please specify at least one argument for this redis.call call";
  } else if (!read_words(lua, words)) {
    reply.text = "ERR Lua redis lib command arguments must be strings or integers";
  } else {
    reply = current->call(words);
  }
  push(lua, reply);
  return reply.kind == Kind::error;
}

int call(lua_State* lua) { return execute(lua) ? lua_error(lua) : 1; }

int pcall(lua_State* lua) {
  execute(lua);
  return 1;
}

// Memory for Lua. Scripts create and drop many small things, so these are kept for the next one.
class Pool {
 public:
  static void* allocate(void* pool, void* old, std::size_t old_size, std::size_t size) {
    return static_cast<Pool*>(pool)->reallocate(old, old_size, size);
  }

 private:
  static constexpr std::size_t kUnit = 16, kClasses = 33;

  struct Free {
    Free* next;
  };

  static std::size_t class_of(std::size_t size) { return (size + kUnit - 1) / kUnit; }

  void* take(std::size_t size) {
    const std::size_t number = class_of(size);
    if (number >= kClasses) return std::malloc(size);
    Free*& first = free_[number];
    if (!first) return std::malloc(number * kUnit);
    return std::exchange(first, first->next);
  }

  void give_back(void* old, std::size_t size) {
    const std::size_t number = class_of(size);
    if (number >= kClasses) return std::free(old);
    Free* freed = static_cast<Free*>(old);
    freed->next = std::exchange(free_[number], freed);
  }

  void* reallocate(void* old, std::size_t old_size, std::size_t size) {
    if (size == 0) {
      if (old) give_back(old, old_size);
      return nullptr;
    }
    if (old && class_of(old_size) == class_of(size) && class_of(size) < kClasses) return old;
    void* fresh = take(size);
    if (old && fresh) {
      std::memcpy(fresh, old, std::min(old_size, size));
      give_back(old, old_size);
    }
    return fresh;
  }

  std::array<Free*, kClasses> free_{};
};

Pool pool;

std::string text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* text = lua_tolstring(lua, index, &size);
  return text ? std::string(text, size) : "";
}

Json json_at(lua_State* lua, int index);

// Its keys are texts.
Json json_of_map(lua_State* lua, int index) {
  Json map = Json::object();
  lua_pushnil(lua);
  while (lua_next(lua, index) != 0) {
    map[text_at(lua, -2)] = json_at(lua, lua_gettop(lua));
    lua_pop(lua, 1);
  }
  return map;
}

// A table whose keys are 1 to n is a list, as for cmsgpack, and so is an empty one.
Json json_of_table(lua_State* lua, int index) {
  luaL_checkstack(lua, 4, "table too deep");
  const auto size = static_cast<int>(lua_objlen(lua, index));
  lua_pushnil(lua);
  const bool is_empty = lua_next(lua, index) == 0;
  if (!is_empty) lua_pop(lua, 2);
  if (size == 0 && !is_empty) return json_of_map(lua, index);
  Json list = Json::array();
  for (int i = 1; i <= size; ++i) {
    lua_rawgeti(lua, index, i);
    list.push_back(json_at(lua, lua_gettop(lua)));
    lua_pop(lua, 1);
  }
  return list;
}

Json json_at(lua_State* lua, int index) {
  switch (lua_type(lua, index)) {
    case LUA_TBOOLEAN: return lua_toboolean(lua, index) != 0;
    case LUA_TNUMBER: {
      const double number = lua_tonumber(lua, index);
      const auto whole = static_cast<long long>(number);
      return static_cast<double>(whole) == number ? Json(whole) : Json(number);
    }
    case LUA_TSTRING: return text_at(lua, index);
    case LUA_TTABLE: return json_of_table(lua, index);
    default: return nullptr;
  }
}

int pack(lua_State* lua) {
  std::string packed;
  Json::to_msgpack(json_at(lua, 1), packed);
  lua_pushlstring(lua, packed.data(), packed.size());
  return 1;
}

void push_json(lua_State* lua, const Json& json) {
  luaL_checkstack(lua, 4, "record too deep");
  if (json.is_boolean()) {
    lua_pushboolean(lua, json.get<bool>());
  } else if (json.is_number()) {
    lua_pushnumber(lua, json.get<double>());
  } else if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    lua_pushlstring(lua, text.data(), text.size());
  } else if (json.is_structured()) {
    lua_newtable(lua);
    int index = 0;
    for (const auto& [key, value] : json.items()) {
      if (json.is_array()) {
        lua_pushinteger(lua, ++index);
      } else {
        lua_pushlstring(lua, key.data(), key.size());
      }
      push_json(lua, value);
      lua_rawset(lua, -3);
    }
  } else {
    lua_pushnil(lua);
  }
}

bool unpacked(lua_State* lua) {
  std::size_t size = 0;
  const char* text = lua_tolstring(lua, 1, &size);
  const Json json = Json::from_msgpack(text, text + size, true, false);
  if (json.is_discarded()) return false;
  push_json(lua, json);
  return true;
}

int unpack(lua_State* lua) {
  luaL_checkstring(lua, 1);
  return unpacked(lua) ? 1 : luaL_error(lua, "Bad data format in input.");
}

void set_list(lua_State* lua, const char* name, const std::vector<std::string>& words) {
  lua_createtable(lua, static_cast<int>(words.size()), 0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    lua_pushlstring(lua, words[i].data(), words[i].size());
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
  lua_setglobal(lua, name);
}

Reply reply_at(lua_State* lua, int index);

// {err = …}, {ok = …}, or a list, which ends at the first nil.
Reply reply_of_table(lua_State* lua, int index) {
  constexpr std::pair<const char*, Kind> kOthers[] = {{"err", Kind::error}, {"ok", Kind::status}};
  for (const auto& [name, kind] : kOthers) {
    lua_getfield(lua, index, name);
    Reply reply{.kind = kind, .text = text_at(lua, -1)};
    const bool found = lua_isstring(lua, -1) != 0;
    lua_pop(lua, 1);
    if (found) return reply;
  }
  Reply reply{.kind = Kind::array};
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, index, i);
    const bool over = lua_isnil(lua, -1);
    if (!over) reply.elements.push_back(reply_at(lua, lua_gettop(lua)));
    lua_pop(lua, 1);
    if (over) return reply;
  }
}

Reply reply_at(lua_State* lua, int index) {
  switch (lua_type(lua, index)) {
    case LUA_TSTRING: return {.kind = Kind::string, .text = text_at(lua, index)};
    case LUA_TNUMBER: return {.kind = Kind::integer, .integer = static_cast<long long>(lua_tonumber(lua, index))};
    case LUA_TBOOLEAN: return lua_toboolean(lua, index) ? Reply{.kind = Kind::integer, .integer = 1} : Reply{};
    case LUA_TTABLE: return reply_of_table(lua, index);
    default: return {};
  }
}

}  // namespace

Interpreter::Interpreter() : lua_(lua_newstate(Pool::allocate, &pool)) {
  luaL_openlibs(lua_);
  lua_gc(lua_, LUA_GCSETPAUSE, 300);  // more memory, less work
  const luaL_Reg redis[] = {{"call", call}, {"pcall", pcall}, {nullptr, nullptr}};
  const luaL_Reg cmsgpack[] = {{"pack", pack}, {"unpack", unpack}, {nullptr, nullptr}};
  luaL_register(lua_, "redis", redis);
  luaL_register(lua_, "cmsgpack", cmsgpack);
  lua_settop(lua_, 0);
}

Interpreter::~Interpreter() { lua_close(lua_); }

int Interpreter::load(const std::string& name, const std::string& text) {
  if (luaL_loadbuffer(lua_, text.data(), text.size(), ("@" + name).c_str()) != 0) {
    std::fprintf(stderr, "%s\n", lua_tostring(lua_, -1));
    std::exit(2);
  }
  return luaL_ref(lua_, LUA_REGISTRYINDEX);
}

Reply Interpreter::run(int script, const std::vector<std::string>& keys, const std::vector<std::string>& arguments,
                       Session& session) {
  current = &session;
  set_list(lua_, "KEYS", keys);
  set_list(lua_, "ARGV", arguments);
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, script);
  const bool failed = lua_pcall(lua_, 0, 1, 0) != 0;
  Reply reply = failed && lua_isstring(lua_, -1) ? Reply{.kind = Kind::error, .text = text_at(lua_, -1)}
                                                 : reply_at(lua_, lua_gettop(lua_));
  lua_settop(lua_, 0);
  return reply;
}

}  // namespace rlock::model
