// The host's part in saving a program: operations on values that are known then, and facts about its functions beyond
// those that the machine asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jit/saving/saved.h"
#include "jit/vm/host.h"

namespace lunaria {

// nil, a boolean, a number, a text or a dtype.
bool is_plain(const Value& v);

class Known {
  public:
    explicit Known(vm::Host& host) : host(host) {}
    virtual ~Known() = default;
    Known(const Known&) = delete;
    Known& operator=(const Known&) = delete;

    vm::Host& host;

    // The result of an operation of the language; nothing where it fails.
    std::optional<Value> computed(const Op& primitive, const std::vector<Value>& operands);
    // The results of a function; nothing where it fails.
    virtual std::optional<std::vector<Value>> called(const Value& f, const std::vector<Value>& args) = 0;
    // The dtype that an object of the host represents.
    virtual std::optional<DType> dtype_of(const Value& object) = 0;

    struct Content {
        std::vector<Value> keys, values;
        bool plain = true;  // no metatable, and keys that are plain values
    };
    virtual Content content_of(const Value& table) = 0;

    // The name by which a saved program may refer to a function or to ms.newaxis: "string.format", "ms.vmap".
    struct Named {
        std::string name;
        Saved saved;
        bool reads;  // it only reads the tables that it gets, and returns none of them
    };
    // Nothing for an object that has no name.
    virtual std::optional<Named> named(const Value& object) = 0;
    // The steps of `for ... in ipairs(t)`.
    virtual bool is_ipairs_step(const Value& f) = 0;

    // The call of a named function that made an object: ms.grad and its kin make functions, ms.slice indices. An empty
    // name: no such call is known.
    struct Made {
        std::string name;
        std::vector<Value> args;
    };
    virtual Made made_by(const Value& object) = 0;
};

}  // namespace lunaria
