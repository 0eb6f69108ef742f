// Functions, blocks, locals and labels that are open while a chunk is parsed, and Lua's rules about them: the meaning
// of a name, the valid targets of assignments and gotos. Follows stock Lua's order of upvalues and its limits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jit/frontend/ast.h"
#include "jit/frontend/lexer.h"

namespace lunaria::lua {

class Scope {
  public:
    Scope(Chunk& chunk, Name* environment_name);

    const Local& environment() const { return *environment_; }
    const Function& function() const { return *current().function; }
    std::uint32_t local_count() const { return static_cast<std::uint32_t>(states_.size()); }

    void open_function(Function* function);
    // Fills in upvalues and nested functions; fails for a goto whose label never came.
    void close_function();
    void open_block(bool is_loop);
    void close_block();

    // A declared local becomes visible when activated: after its initial value, as `local x = x` wants it.
    Local* declare(Name* name, const Span& span, LocalKind kind);
    void activate(Local* local, Name* name);
    // Takes the room of the variables that stock Lua keeps for a loop; they count for the limit of locals.
    void reserve_hidden(int count, const Span& span);

    const Expr* resolve(Name* name, const Span& span);
    // Notes the assignment; fails if the target is constant. `found` is the place for the message.
    void assign(const Expr& target, const Span& found);

    bool in_loop() const { return !current().open_loops.empty(); }
    void add_label(Label* label, Name* name, bool ends_block);
    void add_goto(Goto* jump, Name* name);

  private:
    struct OpenFunction {
        Function* function = nullptr;
        std::vector<Upvalue> upvalues;
        std::vector<const Function*> nested;
        std::size_t first_active = 0, first_label = 0, first_goto = 0;
        int pending_locals = 0;
        std::vector<std::uint32_t> open_loops;  // serial numbers
    };
    struct OpenBlock {
        std::size_t first_active, first_label, first_goto;
        bool is_loop, is_body;
    };
    struct Active {
        Local* local;  // null for a hidden variable of a loop
        Name* name;
        Local* shadowed;
    };
    // State of a local, by id, that tells whether a closure can see it change.
    struct LocalState {
        std::uint32_t loop_depth = 0;     // loops of its function that were open at the declaration
        std::uint32_t assigned_loop = 0;  // the outermost loop inside its scope that holds an assignment
    };
    struct OpenLabel {
        Label* label;
        Name* name;
        int shadowed;
        std::size_t active;
    };
    struct PendingGoto {
        Goto* jump;
        Name* name;
        std::size_t active;
    };

    OpenFunction& current() { return *functions_[depth_ - 1]; }
    const OpenFunction& current() const { return *functions_[depth_ - 1]; }
    void open(bool is_loop, bool is_body);
    void check_local_limit(const Span& span);
    void check_jump_limit(std::size_t count, const Span& span) const;
    std::uint32_t capture(std::size_t depth, Local* local, const Span& span);
    void note_capture(const OpenFunction& owner, Local* local);
    std::string describe(const Function& function) const;
    [[noreturn]] void fail(const Span& span, std::string message, std::string hint) const;

    Chunk& chunk_;
    Name* environment_name_;
    Local* environment_;
    std::vector<std::unique_ptr<OpenFunction>> functions_;  // the first depth_ are open, the rest wait for reuse
    std::size_t depth_ = 0;
    std::vector<OpenBlock> blocks_;
    std::vector<Active> active_;
    std::vector<LocalState> states_;
    std::vector<OpenLabel> labels_;
    std::vector<PendingGoto> gotos_;
    std::uint32_t loop_serial_ = 0;
};

}  // namespace lunaria::lua
