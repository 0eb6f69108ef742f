// The kinds of values as the text of a chunk alone shows them: a value is known to be a tensor where it comes from
// ms.tensor or an operator, or is arithmetic with such a value, in all assignments to its variable. Parameters are
// unknown.
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "jit/frontend/ast.h"

namespace lunaria::lua {

// `any`: unknown. `nothing`: no assignment was seen yet. `operators`: ms.ops, `precision`: ms.amp, `maker`: a function
// that gives a tensor.
enum class Known : std::uint8_t { nothing, library, operators, precision, maker, tensor, number, any };

// The kind of the value that a global holds when the chunk is loaded, if the chunk does not assign to it; `nothing` if
// it has none.
using KnownGlobal = std::function<Known(std::string_view)>;

class Kinds {
  public:
    // Both must outlive this object.
    Kinds(const Chunk& chunk, const KnownGlobal& global);

    Known of(const Expr& e) const { return known_of(e, 0); }
    // Whether the chunk assigns to the global.
    bool assigns(std::string_view global) const { return globals_.contains(global); }
    // The globals that it assigns to.
    const std::map<std::string_view, Known>& globals() const { return globals_; }

  private:
    // An assignment to a local or, by name, to a global; a null value is an unknown one.
    struct Assignment {
        const Local* local;
        std::string_view global;
        const Expr* value;
    };

    void assign(const Local* local, const Expr* value);
    void assign_to(const Expr& target, const Expr* value);
    void note(const Stat&) {}
    void note(const LocalDecl& s);
    void note(const LocalFunction& s);
    void note(const FunctionDecl& s);
    void note(const Assign& s);
    void note(const NumericFor& s);
    void note(const GenericFor& s);
    void settle();
    Known known_now(std::string_view name) const;
    Known known_global(const GlobalName& name) const;
    Known known_of(const Expr& e, int depth) const;
    Known known_index(const Index& e, int depth) const;
    Known known_call(const Call& e, int depth) const;
    Known known_method(const MethodCall& e, int depth) const;
    Known known_unary(const Unary& e, int depth) const;
    Known known_binary(const Binary& e, int depth) const;

    const Chunk& chunk_;
    const KnownGlobal& global_;
    std::vector<Assignment> assignments_;
    std::vector<Known> locals_;  // by id
    std::map<std::string_view, Known> globals_;
};

}  // namespace lunaria::lua
