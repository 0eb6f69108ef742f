// A Lua function with everything that it needs, taken out of one state to be put into others: values are copied, values
// of the library are looked up in the target state. Variables that functions share are shared by the copies too.
#pragma once

#include <cstdint>
#include <lua.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace lunaria {

class Captured {
  public:
    // The function at `index`, with the globals that it and the functions in it name. Throws, in the name of `where`,
    // where something cannot be copied: a coroutine, an open file, a function of C that the library does not have. A
    // global of that kind raises the error where a copy uses it.
    Captured(lua_State* L, int index, std::string_view where);

    // Pushes a copy of the function. The state needs the library's modules only.
    void put(lua_State* L) const;

    // Whether there are globals that raise an error in a copy.
    bool refuses() const { return !refused_.empty(); }

    // Whether the copies would be the same.
    bool operator==(const Captured& other) const;

  private:
    friend class Taker;
    friend class Putter;
    enum class Kind : uint8_t {
        nil,
        boolean,
        integer,
        number,
        text,
        tensor,
        dtype,
        handle,
        table,
        function,
        library,
        globals
    };
    struct Part {
        Kind kind = Kind::nil;
        int64_t integer = 0;  // also a boolean and a dtype
        double number = 0;
        std::string text;        // also a function's code, the path of a library value, the type of a handle
        std::string chunk;       // of a function
        Tensor tensor, content;  // the captured one, and a view of its content, which stays as it is
        uint32_t version = 0;    // of the tensor
        std::shared_ptr<const void> object;  // the content of a handle, which never changes
        std::vector<std::pair<size_t, size_t>> fields;
        size_t metatable = kNone;
        std::vector<size_t> variables;  // of a function; kNone: the one of its prologue
        bool operator==(const Part& other) const;
    };
    static constexpr size_t kNone = SIZE_MAX;

    std::vector<Part> parts_;        // the function is the first
    std::vector<size_t> variables_;  // their values
    std::vector<std::pair<std::string, size_t>> globals_, modules_;
    std::map<std::string, std::string> refused_;  // globals that cannot be copied, and why
    std::map<std::string, std::string> sources_;  // of chunks
    std::string path_;                            // package.path
};

}  // namespace lunaria
