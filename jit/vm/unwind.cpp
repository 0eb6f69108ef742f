// Errors within the machine: calls that catch them, variables closed on the way, and the derivative of the part that
// ran.
//
// A function that an error leaves has run only a part of a block, so it never reached the block's end, where its
// backpropagator is made. Therefore each frame continues in another function: the same block up to the call that
// failed, which then returns the error as the result of that call. Its derivative begins with the same nodes as that of
// the whole function, so the values in the frame's registers are those that it needs. From there on it runs like any
// other function, and returns the backpropagator of the part that ran. The error travels outwards as a result,
// cotangents back inwards.
#include <algorithm>

#include "core/ir/substitution.h"
#include "jit/frontend/literals.h"
#include "jit/language.h"
#include "jit/vm/handlers.h"
#include "jit/vm/machine.h"

namespace lunaria::vm {

// The function in which a frame continues after an error, and the registers that it keeps.
struct Exit {
    std::shared_ptr<const ir::Graph> graph;
    const Code* code = nullptr;
    uint32_t pc = 0;
    std::vector<std::pair<int32_t, int32_t>> moves;  // to, from
    bool takes_results = false;
    Destination to;  // of the failed call's results
};

namespace {

constexpr size_t kNowhere = ~size_t{0};

// Calls with a derivative given by the program.
bool is_given(const ir::Node& node) {
    static const Op &custom = lua::primitive("custom_call"), &checkpoint = lua::primitive("checkpoint_call");
    return node.op == &custom || node.op == &checkpoint;
}

bool is_call(const ir::Node& node) { return lua::facts(node.op).calls && !is_given(node); }

size_t index_of(const ir::Node& node) {
    const auto& body = node.graph().body();
    return static_cast<size_t>(std::find(body.begin(), body.end(), &node) - body.begin());
}

// The node of the undifferentiated function from which a node of its derivative was made, and the first of the nodes
// made from it.
struct Place {
    Function* function;
    const ir::Graph* block;
    size_t node;
    size_t begin;
};

Place origin_of(Function& function, const ir::Node& node) {
    Place place{&function, &node.graph(), index_of(node), 0};
    std::vector<const autodiff::Origin*> path;
    while (Function* primal = place.function->primal) {
        const autodiff::Origin& origin = primal->origins.at(place.block);
        place.node = static_cast<size_t>(std::upper_bound(origin.ends.begin(), origin.ends.end(), place.node) -
                                         origin.ends.begin());
        place.block = origin.block;
        place.function = primal;
        path.push_back(&origin);
    }
    place.begin = place.node;
    for (size_t i = path.size(); i-- > 0;)
        place.begin = place.begin > 0 ? path[i]->ends[place.begin - 1] : path[i]->begin;
    return place;
}

// The block in the derivative of this order that was made from a block.
const ir::Graph* block_of_derivative(Function& function, const ir::Graph* block, int order) {
    Function* f = &function;
    for (; order > 0; --order) {
        derivative_of(*f, 1);
        const auto found =
            std::find_if(f->origins.begin(), f->origins.end(), [&](const auto& o) { return o.second.block == block; });
        block = found->first;
        f = &derivative_of(*f, 1);
    }
    return block;
}

// The writer of the function that leaves `block` after the first `count` nodes.
class Truncation {
  public:
    Truncation(const ir::Graph& function, const ir::Graph& block)
        : block_(block), graph_(std::make_shared<ir::Graph>(function.name)) {
        graph_->span = function.span;
        graph_->captures = function.captures;
        graph_->variadic = function.variadic;
        if (&block == &function) {
            target_ = graph_.get();
        } else {
            target_ = &graph_->add_inner(block.name);
            copy_parameters(function, *graph_);
            graph_->result = Value(
                graph_->add_call(*graph_->add_function(*target_), std::vector<Value>(block.parameters().size()), {}));
        }
        copy_parameters(block, *target_);
        values_.write_to(*target_);
    }

    // `failed`: the last node is the call whose results are the error. `pending`: the number of variables to close.
    std::shared_ptr<ir::Graph> run(size_t count, bool failed, size_t pending) {
        for (size_t i = 0; i < count; ++i) {
            const ir::Node* node = block_.body()[i];
            values_[node] = values_.copy(*node);
        }
        const ir::Node* at = count < block_.body().size() ? block_.body()[count] : nullptr;
        Value error, results = Value::list({});
        if (failed) {
            const ir::Node& call = *block_.body()[count - 1];
            results = values_[&call];
            if (is_call(call) && lua::facts(call.op).ordered) results = Value(target_->add_item(*results.node(), 0));
            if (is_call(call)) {
                if (pending > 0) error = emit("result", {results, Value(0)});
            } else {
                error = results;
                results = Value::list({results});
            }
        } else if (static const Op& raise = lua::primitive("raise"); at && at->op == &raise) {
            error = values_(at->args[0]);
            results = Value::list({error});
        } else if (pending > 0) {
            error = emit("caught", {});
        }
        for (; pending > 0; --pending) {
            Value value = emit("pending", {});
            Value method = emit("closing", {value});
            emit("call", {method, Value::list({value, error})});
        }
        target_->result = results;
        return graph_;
    }
    const ir::Graph& target() const { return *target_; }

  private:
    void copy_parameters(const ir::Graph& from, ir::Graph& to) {
        for (const ir::Node* p : from.parameters()) values_[p] = Value(to.add_parameter(p->name, p->type));
    }
    Value emit(std::string_view name, std::vector<Value> args) {
        return Value(target_->add_call(lua::primitive(name), std::move(args), {}));
    }
    const ir::Graph& block_;
    std::shared_ptr<ir::Graph> graph_;
    ir::Graph* target_ = nullptr;
    ir::Substitution values_;
};

// Sets the exit's start and registers: the values of `from` (a block of `old`) that the block `to` of the exit's
// function needs from node `next` on. `failed` is the node of `from` that raised the error.
void connect(Exit& exit, const ir::Graph& old, const ir::Graph& from, const ir::Graph& to, size_t failed, size_t next) {
    const ir::Graph& function = exit.code->function->graph;
    const Layout before = layout_of(old, from), after = layout_of(function, to);
    auto take = [&](const ir::Node* now, const ir::Node* then) {
        const auto last = after.last.find(now);
        if (last == after.last.end() || last->second < next) return;
        const auto there = before.registers.find(then), here = after.registers.find(now);
        if (here == after.registers.end()) return;  // its results have registers of their own
        const auto kept = before.last.find(then);
        if (there == before.registers.end() || kept == before.last.end() || kept->second <= failed)
            throw state_error("grad", "a value is gone that the derivative of a failed call needs");
        exit.moves.emplace_back(here->second, there->second);
    };
    for (size_t i = 0; i < to.parameters().size(); ++i) take(to.parameters()[i], from.parameters()[i]);
    const size_t shared = exit.takes_results ? failed : next;
    for (size_t i = 0; i < shared; ++i) take(to.body()[i], from.body()[i]);

    const std::vector<const ir::Graph*> blocks = ir::blocks_of(function);
    const auto block = static_cast<size_t>(std::find(blocks.begin(), blocks.end(), &to) - blocks.begin());
    for (uint32_t pc = exit.code->blocks[block].start;; ++pc) {
        const Instr& instr = exit.code->instrs[pc];
        if (exit.takes_results && instr.node == to.body()[failed]) {
            exit.to = Machine::destination(instr);
            exit.pc = pc + 1;
            return;
        }
        if (!instr.node || (!exit.takes_results && index_of(*instr.node) >= next)) {
            exit.pc = pc;
            return;
        }
    }
}

// The exit of `function` at an instruction. `inner`: the failed call has a backpropagator.
std::shared_ptr<const Exit> make_exit(Function& function, const Instr& instr, bool inner, size_t pending) {
    auto exit = std::make_shared<Exit>();
    const ir::Graph& old = function.graph;
    const ir::Node& node = *instr.node;
    const size_t failed = index_of(node);
    if (function.failed) {
        Function& primal = *function.failed->function;
        exit->code = &code_of(derivative_of(primal, old.order));
        exit->takes_results = true;
        connect(*exit, old, node.graph(), exit->code->function->graph, failed, failed + 1);
        return exit;
    }
    const Place place = origin_of(function, node);
    const ir::Node& original = *place.block->body()[place.node];
    exit->takes_results = inner && !is_given(original);
    Truncation truncation(place.function->graph, *place.block);
    exit->graph = truncation.run(place.node + (exit->takes_results ? 1 : 0), exit->takes_results, pending);
    Function& primal = function_of(*exit->graph);
    exit->code = &code_of(derivative_of(primal, old.order));
    const ir::Graph& to = *block_of_derivative(primal, &truncation.target(), old.order);
    connect(*exit, old, node.graph(), to, failed, exit->takes_results ? failed + 1 : place.begin);
    return exit;
}

struct Owners {
    std::shared_ptr<const void> function;
    std::shared_ptr<const Exit> exit;
};

}  // namespace

// Continues the top frame at the exit.
void Machine::leave_by(std::shared_ptr<const Exit> exit, Value error, Values backs) {
    Frame& frame = frames_.back();
    Destination to = frame.to;
    Value callee = frame.callee;
    auto owner = std::make_shared<const Owners>(Owners{this->owner(), exit});
    Values kept;
    for (auto [there, here] : exit->moves) kept.push_back(registers_[here]);
    pop();
    push(*exit->code, std::move(callee), std::move(owner), to);
    for (size_t i = 0; i < kept.size(); ++i) registers_[exit->moves[i].first] = std::move(kept[i]);
    pc_ = exit->pc;
    if (exit->takes_results) give(exit->to, {std::move(error)}, {backs.begin(), backs.size()});
}

// Continues the top frame after an error of a function that it called. `count`: the variables to close.
void Machine::take_exit(size_t count, const Value& error, const Values& backs) {
    Function* function = code_->function;
    const bool inner = std::any_of(backs.begin(), backs.end(), [](const Value& r) { return !r.is_nil(); });
    const uint64_t key = (static_cast<uint64_t>(pc_) << 16) | std::min<size_t>(count, 0x7fff) << 1 | (inner ? 1 : 0);
    std::shared_ptr<const Exit>& exit = function->exits[key];
    if (!exit) exit = make_exit(*function, code_->instrs[pc_ - 1], inner, count);
    depth = frames_.back().depth;
    caught_ = error;
    leave_by(exit, error, backs);
}

// Runs the rest of the top function on its own; false: it failed, too.
bool Machine::run_rest(Value& error, Values& backs) {
    frames_.back().to = Destination{};
    frames_.back().to.base = true;
    const size_t finals = final_.size();
    final_.emplace_back();
    Host::Protected outcome = host().call_protected([&] { nested(frames_.size() - 1); });
    if (outcome.ok) {
        backs = std::move(final_.back().backs);
    } else {
        error = std::move(outcome.error);
        backs.clear();
    }
    final_.resize(finals);
    return outcome.ok;
}

size_t Machine::pending() const {
    size_t count = 0;
    for (size_t i = closing_.size(); i-- > 0 && closing_[i].frame == frames_.size();) ++count;
    return count;
}

// Leaves frames until one catches the error; false if none above `level` does.
bool Machine::unwind(size_t level, Value& error) {
    auto meets = [&] {
        for (size_t i = level + 1; i < frames_.size(); ++i)
            if (frames_[i].code->function && frames_[i].code->function->failed) return true;
        return false;
    };
    if (raised_.kind() == error.kind() &&
        (error.is_number()   ? raised_.number() == error.number()
         : error.is_tensor() ? raised_.tensor().same_body(error.tensor())
                             : error.kind() == Value::Kind::string && raised_.string() == error.string()))
        error = raised_;
    raised_ = Value();
    bool met = meets();
    Values backs;
    while (frames_.size() > level + 1) {
        Function* function = code_->function;
        const bool started = function && pc_ > code_->blocks[0].start && code_->instrs[pc_ - 1].node;
        const size_t count = pending();
        const bool follows = met && started && function->graph.order > 0;
        if (!started || (!function->failed && !follows && count == 0)) {
            const bool ends = frames_.back().to.ends;
            pop();
            backs.clear();
            if (ends) coroutines_.fail(error, backs);
            continue;
        }
        const bool here = function->failed != nullptr;
        const bool ends = frames_.back().to.ends;
        take_exit(count, error, backs);
        if (here) return true;
        if (!run_rest(error, backs)) met = meets();
        if (ends) coroutines_.fail(error, backs);
    }
    return false;
}

void Machine::nested(size_t level) {
    struct Restore {
        Machine& m;
        size_t level, guarded;
        ~Restore() {
            m.level_ = level;
            m.guarded_ = guarded;
        }
    } restore{*this, level_, guarded_};
    level_ = level;
    guarded_ = kNowhere;
    loop(level);
}

// Runs all frames above the level; after an error it continues where the error is caught.
void Machine::guarded() {
    if (guarded_ == level_) return;
    const size_t level = guarded_ = level_;
    bool ok = false;
    while (!ok) {
        Host::Protected outcome = host().call_protected([&] { loop(level); });
        ok = outcome.ok;
        if (!ok && !unwind(level, outcome.error)) host().raise(outcome.error);
    }
}

void Machine::raise(const Value& value) {
    raised_ = value;
    host().raise(value);
    std::abort();  // not reached: the compiler does not rely on a virtual function to throw
}

void Machine::push_closing(Value value) { closing_.push_back({frames_.size(), std::move(value)}); }

Value Machine::pop_closing() {
    Value value = std::move(closing_.back().value);
    closing_.pop_back();
    return value;
}

std::string Machine::caller() const {
    return !frames_.empty() && code_->function && code_->function->failed ? std::string() : here();
}

// "file:line: " of the call `level` functions further out than the running one.
std::string Machine::place(size_t level) const {
    if (frames_.size() < level + 1) return {};
    const Frame& frame = frames_[frames_.size() - 1 - level];
    if (!frame.code->function || frame.pc == 0) return {};
    const ir::Node* node = frame.code->instrs[frame.pc - 1].node;
    return node ? ir::place_text(node->span) : std::string();
}

bool Machine::calls_method() const {
    const ir::Node* node = frames_.empty() || pc_ == 0 ? nullptr : code_->instrs[pc_ - 1].node;
    if (!node || !lua::facts(node->op).calls) return false;
    // In a derivative the contexts come first, and a field is the first of two results.
    const size_t derived = lua::facts(node->op).ordered;
    if (!node->args[derived].is_node()) return false;
    const ir::Node* callee = node->args[derived].node();
    if (derived && callee->kind == ir::NodeKind::item) callee = callee->args[0].node();
    const Value& list = node->args[derived + 1];
    const bool reads = lua::facts(callee->op).access == lua::Access::reads_field;
    if (!reads || !list.is_list() || list.items().empty()) return false;
    const Value &object = callee->args[derived], &first = list.items()[0];
    return object.is_node() && first.is_node() ? object.node() == first.node()
                                               : !object.is_node() && !first.is_node() && same_value(object, first);
}

// If the function is written in Lunaria's own Lua, the line of the user's call; none if pcall called it.
std::string Machine::user_place(size_t level) const {
    std::string found;
    if (level >= frames_.size() && level > 0) return host().outer_place(level - frames_.size());
    for (; level < frames_.size(); ++level) {
        const Frame& frame = frames_[frames_.size() - 1 - level];
        if (frame.code->function && frame.code->function->failed) return {};
        found = place(level);
        if (!found.starts_with("lunaria:")) return found;
    }
    return found;
}

namespace {

bool is_true(const Value& v) { return !(v.is_nil() || (v.kind() == Value::Kind::boolean && !v.boolean())); }

void guard(Machine& m, const Instr& i) {
    if (is_true(m.operand(i, 0))) m.guarded();
}

void keep(Machine&, const Instr&) {}

// The level in the second argument of error: an integer, or a value that Lua converts to one. Elsewhere a tensor may
// stand for a number.
int64_t level_of(const Value& level) {
    if (level.is_nil()) return 1;
    if (level.kind() == Value::Kind::integer) return level.integer();
    const auto given = level.kind() == Value::Kind::string ? lua::read_number(level.string()) : std::nullopt;
    if (given && std::holds_alternative<int64_t>(*given)) return std::get<int64_t>(*given);
    if (level.is_tensor()) throw argument_error("", "bad argument #2 to 'error' (number expected, got Tensor)");
    return static_cast<int64_t>(given ? std::get<double>(*given) : level.number());
}

void raise(Machine& m, const Instr& i) {
    Value value = m.operand(i, 0);
    const int64_t depth = level_of(m.operand(i, 1));
    if (value.kind() == Value::Kind::string && depth > 0) {
        const std::string place = m.user_place(static_cast<size_t>(depth));
        const uint16_t marks = value.marks();
        if (!place.empty()) value = Value(str(place, ": ", value.string()));
        value.set_marks(marks);
    }
    m.raise(value);
}

void to_close(Machine& m, const Instr& i) {
    const Value& v = m.operand(i, 0);
    if (!is_true(v)) return;
    if (m.host().metamethod(v, v, "__close").is_nil())
        throw argument_error("", str("variable '", m.operand(i, 1).string(), "' got a non-closable value"));
    m.push_closing(v);
}

void pending(Machine& m, const Instr& i) { m.set(i, m.last_closing()); }

void closing(Machine& m, const Instr& i) {
    const Value v = m.pop_closing();
    m.set(i, m.host().metamethod(v, v, "__close"));
}

void caught(Machine& m, const Instr& i) { m.set(i, m.caught()); }

}  // namespace

std::span<const NamedHandler> error_handlers() {
    static constexpr NamedHandler list[] = {
        {"guard", guard},     {"keep", keep},       {"raise", raise},   {"to_close", to_close},
        {"pending", pending}, {"closing", closing}, {"caught", caught},
    };
    return list;
}

}  // namespace lunaria::vm
