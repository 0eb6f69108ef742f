// The state of lowering one function; statements and expressions are in files of their own.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "jit/language.h"
#include "jit/lower/blocks.h"
#include "jit/lower/lower.h"

namespace lunaria::lower {

class FunctionLowering {
  public:
    FunctionLowering(const lua::Chunk& chunk, std::shared_ptr<const std::string> chunk_name,
                     const lua::Function& function, ir::Graph& graph, bool stops, std::vector<Operation>* operations,
                     std::vector<Later>* later, Variable own_name = nullptr);
    void run();

  private:
    // Expressions. `value` cuts several results to one.
    Value value(const lua::Expr& e);
    Value leaf(const lua::Expr& e);
    Value compound(const lua::Expr& e);
    Value binary(const lua::Binary& e);
    Value logical(const lua::Expr& e);
    Value table(const lua::Table& e);
    Value closure(const lua::Function& f, Variable own_name);
    Value call(const lua::Expr& e);  // the list of results
    Value many(const lua::Expr& e);  // the list of results of a call or vararg
    bool gives_many(const lua::Expr& e) const;
    Value list(std::span<const lua::Expr* const> values);  // a list of values, or a node for one of open length
    // Exactly `count` values, by Lua's rule of adjustment.
    std::vector<Value> adjusted(std::span<const lua::Expr* const> values, size_t count);
    void condition(const lua::Expr& e, Block& yes, Block& no);

    // An operand that waits for others. A variable that the others may assign is read only when it is needed, as stock
    // Lua reads its registers (and, with `upvalues`, a variable of an enclosing function); other operands are evaluated
    // in their place.
    struct Held {
        Variable kept = nullptr;
        const Local* variable = nullptr;
    };
    Held hold(const lua::Expr& e, bool upvalues = false);
    Held hold(Value v);
    Value take(const Held& held);

    // Statements.
    void block(const lua::Block& b);
    void statement(const lua::Stat& s);
    void assign(const lua::Assign& s);
    void if_statement(const lua::If& s);
    void while_statement(const lua::While& s);
    void repeat_statement(const lua::Repeat& s);
    void numeric_for(const lua::NumericFor& s);
    void generic_for(const lua::GenericFor& s);
    Block& label(const lua::Label& l);

    // Variables to be closed. An error closes them by itself; for all other ways out, the lowering writes calls that
    // do.
    void to_close(std::string_view name, Value v);
    void close_down_to(size_t depth);
    // The number of them that are open at the target of a `goto`.
    size_t open_at(const lua::Label& l) const;

    // Variables: plain ones are values; ones that change after a closure has captured them are cells.
    void declare(const Local& local, Value initial);
    Value read(const Local& local);
    void write(const Local& local, Value v);
    static bool is_cell(const Local& local) { return local.captured && local.assigned_after_capture; }

    Value emit(std::string_view name, std::vector<Value> args);
    // An operation whose errors may name its operands.
    Value operate(std::string_view name, std::vector<Value> args, const lua::Expr* first,
                  const lua::Expr* second = nullptr);
    ir::Span span(const lua::Span& s) const;
    // The block in which lowering continues; after a jump away, an unreachable one.
    void go_on_in(Block& b) {
        here_ = &b;
        if (stops_) stop_point({});
    }
    void stop_point(ir::Span place);
    void jump_and_go_on(Block& target, Block& next);

    const lua::Chunk& chunk_;
    std::shared_ptr<const std::string> chunk_name_;
    const lua::Function& function_;
    ir::Graph& graph_;
    Blocks blocks_;
    Block* here_;
    ir::Span at_;  // of the expression or statement at hand
    struct LoopEnd {
        Block* block;
        size_t open;  // variables to be closed around the loop
    };
    std::vector<LoopEnd> loop_ends_;  // where `break` goes
    std::vector<Variable> closing_;   // variables to be closed, those of enclosing blocks first
    struct OpenBlock {
        const lua::Block* block;
        size_t open;  // number of closing_ when it began
    };
    std::vector<OpenBlock> open_blocks_;
    std::unordered_map<const lua::Label*, size_t> open_at_labels_;  // of the labels passed so far
    std::unordered_map<const lua::Label*, Block*> labels_;
    const Variable own_name_;  // the local function's own name, which is the running closure
    Value varargs_;
    int counter_ = 0;
    const bool stops_;
    std::vector<Operation>* const operations_;
    std::vector<Later>* const later_;
    std::vector<Variable> visible_;  // innermost last; of programs with stop points
};

}  // namespace lunaria::lower
