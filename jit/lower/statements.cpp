#include "core/base/error.h"
#include "core/ir/verifier.h"
#include "jit/lower/function.h"
#include "jit/lower/lower.h"

namespace lunaria::lower {

using lua::StatKind;

namespace {

// Variables that are declared while it lives stay visible until it ends.
class Scope {
  public:
    explicit Scope(std::vector<Variable>& visible) : visible_(visible), size_(visible.size()) {}
    ~Scope() { visible_.resize(size_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

  private:
    std::vector<Variable>& visible_;
    size_t size_;
};

}  // namespace

std::unique_ptr<ir::Graph> lower(const lua::Chunk& chunk, const lua::Function& function, bool stops,
                                 std::vector<Operation>* operations, std::vector<Later>* later) {
    auto graph = std::make_unique<ir::Graph>(function.name.empty() ? "function" : std::string(function.name));
    FunctionLowering(chunk, std::make_shared<const std::string>(chunk.name()), function, *graph, stops, operations,
                     later)
        .run();
#ifndef NDEBUG
    if (!later) ir::verify(*graph);
#endif
    return graph;
}

void lower_later(const lua::Chunk& chunk, const Later& one, std::vector<Later>& later) {
    FunctionLowering(chunk, std::make_shared<const std::string>(chunk.name()), *one.function, *one.graph, false,
                     nullptr, &later, one.own_name)
        .run();
}

FunctionLowering::FunctionLowering(const lua::Chunk& chunk, std::shared_ptr<const std::string> chunk_name,
                                   const lua::Function& function, ir::Graph& graph, bool stops,
                                   std::vector<Operation>* operations, std::vector<Later>* later, Variable own_name)
    : chunk_(chunk),
      chunk_name_(std::move(chunk_name)),
      function_(function),
      graph_(graph),
      blocks_(graph),
      here_(&blocks_.entry()),
      own_name_(own_name),
      stops_(stops),
      operations_(operations),
      later_(later) {}

void FunctionLowering::run() {
    graph_.span = span(function_.span);
    at_ = graph_.span;
    graph_.captures = 0;
    for (const lua::Upvalue& u : function_.upvalues) {
        if (u.local->kind != lua::LocalKind::environment) visible_.push_back(u.local);
        if (u.local == own_name_) {
            blocks_.write(*here_, own_name_, emit("current_function", {}));
            continue;
        }
        blocks_.write(*here_, u.local, Value(graph_.add_parameter(std::string(u.local->name), {})));
        ++graph_.captures;
    }
    graph_.variadic = function_.is_vararg;
    std::vector<ir::Node*> arguments;
    for (const Local* p : function_.parameters) arguments.push_back(graph_.add_parameter(std::string(p->name), {}));
    if (function_.is_vararg) varargs_ = Value(graph_.add_parameter("...", {}));
    for (size_t i = 0; i < arguments.size(); ++i) declare(*function_.parameters[i], Value(arguments[i]));
    block(*function_.body);
    if (here_->ending == Ending::open) blocks_.leave(*here_, Value::list({}), at_);
    blocks_.finish();
}

ir::Span FunctionLowering::span(const lua::Span& s) const {
    return {chunk_name_, static_cast<int>(s.line), static_cast<int>(s.column)};
}

void FunctionLowering::declare(const Local& local, Value initial) {
    visible_.push_back(&local);
    blocks_.write(*here_, &local, is_cell(local) ? emit("cell", {std::move(initial)}) : std::move(initial));
}

void FunctionLowering::stop_point(ir::Span place) {
    std::string names;
    std::vector<Value> values;
    auto add = [&](const std::string& name, Value v) {
        names += (names.empty() ? "" : " ") + name;
        values.push_back(std::move(v));
    };
    if (varargs_.is_node()) add("...", varargs_);
    for (Variable v : visible_) {
        const char* outer = v->function == &function_ ? "" : "^";
        add(str(outer, is_cell(*v) ? "&" : "", v->name), blocks_.read(*here_, v));
    }
    emit("stop_point", {Value(names), Value::list(std::move(values))}).node()->span = std::move(place);
}

Value FunctionLowering::read(const Local& local) {
    Value v = blocks_.read(*here_, &local);
    return is_cell(local) ? emit("cell_get", {v}) : v;
}

void FunctionLowering::write(const Local& local, Value v) {
    if (is_cell(local))
        emit("cell_set", {blocks_.read(*here_, &local), std::move(v)});
    else
        blocks_.write(*here_, &local, std::move(v));
}

void FunctionLowering::jump_and_go_on(Block& target, Block& next) {
    if (here_->ending == Ending::open) blocks_.jump(*here_, target, at_);
    go_on_in(next);
}

void FunctionLowering::block(const lua::Block& b) {
    const Scope scope(visible_);
    const size_t open = closing_.size();
    open_blocks_.push_back({&b, open});
    for (const lua::Stat* s : b.statements) {
        if (stops_) stop_point(span(s->span));
        statement(*s);
    }
    if (here_->ending == Ending::open) close_down_to(open);
    closing_.resize(open);
    open_blocks_.pop_back();
}

void FunctionLowering::to_close(std::string_view name, Value v) {
    emit("guard", {v});
    emit("to_close", {v, Value(name)});
    closing_.push_back(blocks_.temporary(name));
    blocks_.write(*here_, closing_.back(), std::move(v));
}

void FunctionLowering::close_down_to(size_t depth) {
    for (size_t i = closing_.size(); i-- > depth;) {
        Value v = blocks_.read(*here_, closing_[i]);
        std::string number = std::to_string(++counter_);
        Block &close = blocks_.add("close" + number), &next = blocks_.add("closed" + number);
        blocks_.branch(*here_, v, close, next, at_);
        blocks_.seal(close);
        go_on_in(close);
        Value method = emit("closing", {v});
        emit("call", {method, Value::list({v, Value()})});
        jump_and_go_on(next, next);
        blocks_.seal(next);
    }
}

size_t FunctionLowering::open_at(const lua::Label& l) const {
    auto passed = open_at_labels_.find(&l);
    if (passed != open_at_labels_.end()) return passed->second;
    // The label is further down in an enclosing block: variables opened in the blocks inside that one are closed.
    size_t open = closing_.size();
    for (size_t i = open_blocks_.size(); i-- > 0;) {
        const auto& statements = open_blocks_[i].block->statements;
        if (std::find(statements.begin(), statements.end(), &l) != statements.end()) return open;
        open = open_blocks_[i].open;
    }
    return open;
}

void FunctionLowering::statement(const lua::Stat& s) {
    at_ = span(s.span);
    switch (s.kind) {
        case StatKind::local: {
            const auto& decl = s.as<lua::LocalDecl>();
            std::vector<Value> values = adjusted(decl.values, decl.locals.size());
            for (size_t i = 0; i < values.size(); ++i)
                if (!decl.locals[i]->constant) declare(*decl.locals[i], values[i]);
            for (size_t i = 0; i < values.size(); ++i)
                if (decl.locals[i]->attribute == lua::Attribute::close) to_close(decl.locals[i]->name, values[i]);
            break;
        }
        case StatKind::local_function: {
            const auto& f = s.as<lua::LocalFunction>();
            if (is_cell(*f.local)) {
                declare(*f.local, {});
                write(*f.local, closure(*f.function, f.local));
            } else {
                declare(*f.local, closure(*f.function, f.local));
            }
            break;
        }
        case StatKind::function: {
            const auto& f = s.as<lua::FunctionDecl>();
            if (const auto* local = f.target->get_if<lua::LocalName>())
                write(*local->local, closure(*f.function, nullptr));
            else if (const auto* upvalue = f.target->get_if<lua::UpvalueName>())
                write(*upvalue->local, closure(*f.function, nullptr));
            else if (const auto* global = f.target->get_if<lua::GlobalName>()) {
                Value environment = value(*global->environment);
                emit("set_index", {environment, Value(global->name), closure(*f.function, nullptr)});
            } else {
                const auto& index = f.target->as<lua::Index>();
                Value object = value(*index.object);
                Value key = value(*index.key);
                operate("set_index", {object, key, closure(*f.function, nullptr)}, index.object);
            }
            break;
        }
        case StatKind::assign:
            return assign(s.as<lua::Assign>());
        case StatKind::call:
            call(*s.as<lua::CallStatement>().call);
            break;
        case StatKind::do_:
            return block(*s.as<lua::Do>().body);
        case StatKind::while_:
            return while_statement(s.as<lua::While>());
        case StatKind::repeat:
            return repeat_statement(s.as<lua::Repeat>());
        case StatKind::if_:
            return if_statement(s.as<lua::If>());
        case StatKind::numeric_for:
            return numeric_for(s.as<lua::NumericFor>());
        case StatKind::generic_for:
            return generic_for(s.as<lua::GenericFor>());
        case StatKind::return_: {
            Value results = list(s.as<lua::Return>().values);
            if (!closing_.empty()) {
                // The returned values are fixed before anything is closed.
                Variable kept = blocks_.temporary("");
                if (results.is_list()) results = emit("spread", {results, Value()});
                blocks_.write(*here_, kept, results);
                close_down_to(0);
                results = blocks_.read(*here_, kept);
            }
            blocks_.leave(*here_, results, span(s.span));
            go_on_in(blocks_.add("unreachable" + std::to_string(++counter_)));
            break;
        }
        case StatKind::break_: {
            close_down_to(loop_ends_.back().open);
            Block& next = blocks_.add("unreachable" + std::to_string(++counter_));
            jump_and_go_on(*loop_ends_.back().block, next);
            break;
        }
        case StatKind::goto_: {
            close_down_to(open_at(*s.as<lua::Goto>().target));
            Block& next = blocks_.add("unreachable" + std::to_string(++counter_));
            jump_and_go_on(label(*s.as<lua::Goto>().target), next);
            break;
        }
        case StatKind::label: {
            Block& target = label(s.as<lua::Label>());
            open_at_labels_[&s.as<lua::Label>()] = closing_.size();
            jump_and_go_on(target, target);
            break;
        }
    }
}

// Labels stay unsealed until the end: a goto further down may jump back.
Block& FunctionLowering::label(const lua::Label& l) {
    auto [entry, fresh] = labels_.try_emplace(&l);
    if (fresh) entry->second = &blocks_.add(std::string(l.name));
    return *entry->second;
}

void FunctionLowering::assign(const lua::Assign& s) {
    // Objects and keys of all targets first, then the values, then the assignments from the right, as stock Lua does.
    struct Target {
        Held object, key;
    };
    std::vector<Target> places(s.targets.size());
    // A table or key in a variable is read after the values, unless the same statement assigns that variable.
    auto assigned_later = [&](const lua::Expr& e, size_t i) {
        auto variable = [](const lua::Expr& x) -> const Local* {
            if (const auto* local = x.get_if<lua::LocalName>()) return local->local;
            const auto* upvalue = x.get_if<lua::UpvalueName>();
            return upvalue ? upvalue->local : nullptr;
        };
        for (size_t k = i + 1; k < s.targets.size(); ++k)
            if (variable(e) && variable(*s.targets[k]) == variable(e)) return true;
        return false;
    };
    for (size_t i = 0; i < s.targets.size(); ++i) {
        if (const auto* index = s.targets[i]->get_if<lua::Index>()) {
            auto place = [&](const lua::Expr& e, bool upvalues) {
                return assigned_later(e, i) ? hold(value(e)) : hold(e, upvalues);
            };
            places[i].object = place(*index->object, index->key->kind == lua::ExprKind::string);
            places[i].key = place(*index->key, false);
        } else if (const auto* global = s.targets[i]->get_if<lua::GlobalName>()) {
            places[i].object = hold(value(*global->environment));
            places[i].key = hold(Value(global->name));
        }
    }
    std::vector<Value> values = adjusted(s.values, s.targets.size());
    for (size_t i = s.targets.size(); i-- > 0;) {
        at_ = span(s.targets[i]->span);
        if (const auto* local = s.targets[i]->get_if<lua::LocalName>())
            write(*local->local, values[i]);
        else if (const auto* upvalue = s.targets[i]->get_if<lua::UpvalueName>())
            write(*upvalue->local, values[i]);
        else {
            const auto* index = s.targets[i]->get_if<lua::Index>();
            operate("set_index", {take(places[i].object), take(places[i].key), values[i]},
                    index ? index->object : nullptr);
        }
    }
}

void FunctionLowering::if_statement(const lua::If& s) {
    std::string number = std::to_string(++counter_);
    Block& end = blocks_.add("after_if" + number);
    for (const lua::IfClause& clause : s.clauses) {
        Block &yes = blocks_.add("then" + number), &no = blocks_.add("else" + number);
        condition(*clause.condition, yes, no);
        blocks_.seal(yes);
        blocks_.seal(no);
        go_on_in(yes);
        block(*clause.body);
        jump_and_go_on(end, no);
    }
    if (s.otherwise) block(*s.otherwise);
    jump_and_go_on(end, end);
    blocks_.seal(end);
}

void FunctionLowering::while_statement(const lua::While& s) {
    std::string number = std::to_string(++counter_);
    Block &head = blocks_.add("while" + number), &body = blocks_.add("body" + number),
          &end = blocks_.add("after_while" + number);
    jump_and_go_on(head, head);
    if (stops_) stop_point(span(s.span));
    condition(*s.condition, body, end);
    blocks_.seal(body);
    go_on_in(body);
    loop_ends_.push_back({&end, closing_.size()});
    block(*s.body);
    loop_ends_.pop_back();
    jump_and_go_on(head, end);
    blocks_.seal(head);
    blocks_.seal(end);
}

void FunctionLowering::repeat_statement(const lua::Repeat& s) {
    std::string number = std::to_string(++counter_);
    Block &body = blocks_.add("repeat" + number), &end = blocks_.add("after_repeat" + number);
    jump_and_go_on(body, body);
    loop_ends_.push_back({&end, closing_.size()});
    // The condition belongs to the body's block.
    const size_t open = closing_.size();
    open_blocks_.push_back({s.body, open});
    const Scope scope(visible_);
    for (const lua::Stat* stat : s.body->statements) {
        if (stops_) stop_point(span(stat->span));
        statement(*stat);
    }
    open_blocks_.pop_back();
    loop_ends_.pop_back();
    if (here_->ending == Ending::open) {
        if (closing_.size() > open) {
            Variable done = blocks_.temporary("");
            blocks_.write(*here_, done, value(*s.condition));
            close_down_to(open);
            blocks_.branch(*here_, blocks_.read(*here_, done), end, body, span(s.condition->span));
        } else {
            condition(*s.condition, end, body);
        }
    }
    closing_.resize(open);
    go_on_in(end);
    blocks_.seal(body);
    blocks_.seal(end);
}

void FunctionLowering::numeric_for(const lua::NumericFor& s) {
    auto keep = [&](std::string_view name, Value v) {
        Variable t = blocks_.temporary(name);
        blocks_.write(*here_, t, std::move(v));
        return t;
    };
    Variable first = keep("start", value(*s.start)), last = keep("limit", value(*s.limit));
    Value step_value = s.step ? value(*s.step) : Value(1);
    at_ = span(s.span);
    Value prepared = emit("for_prepare", {blocks_.read(*here_, first), blocks_.read(*here_, last), step_value});
    auto part = [&](std::string_view name, int i) { return keep(name, emit("result", {prepared, Value(i)})); };
    Variable i = part(s.variable->name, 0), limit = part("limit", 1), step = part("step", 2), count = part("count", 3);
    auto get = [&](Variable v) { return blocks_.read(*here_, v); };

    std::string number = std::to_string(++counter_);
    Block &head = blocks_.add("for" + number), &body = blocks_.add("body" + number),
          &end = blocks_.add("after_for" + number);
    Block& next = blocks_.add("next" + number);
    jump_and_go_on(head, head);
    Value more = emit("for_more", {get(i), get(limit), get(step), get(count)});
    blocks_.branch(*here_, more, body, end, at_);
    blocks_.seal(body);
    const Scope scope(visible_);
    go_on_in(body);
    declare(*s.variable, get(i));
    loop_ends_.push_back({&end, closing_.size()});
    block(*s.body);
    loop_ends_.pop_back();
    jump_and_go_on(next, next);
    blocks_.seal(next);
    at_ = span(s.span);
    if (stops_) stop_point(at_);
    blocks_.write(*here_, i, emit("add", {get(i), get(step)}));
    blocks_.write(*here_, count, emit("for_count", {get(count)}));
    jump_and_go_on(head, end);
    blocks_.seal(head);
    blocks_.seal(end);
}

void FunctionLowering::generic_for(const lua::GenericFor& s) {
    std::vector<Value> start = adjusted(s.values, 4);
    at_ = span(s.span);
    std::vector<Variable> parts;
    for (Value& v : start) {
        parts.push_back(blocks_.temporary("state"));
        blocks_.write(*here_, parts.back(), std::move(v));
    }
    const size_t open = closing_.size();
    if (s.values.size() > 3 || gives_many(*s.values.back())) to_close("(for state)", blocks_.read(*here_, parts[3]));
    const Variable f = parts[0], state = parts[1], control = parts[2];
    auto get = [&](Variable v) { return blocks_.read(*here_, v); };

    std::string number = std::to_string(++counter_);
    Block &head = blocks_.add("for" + number), &body = blocks_.add("body" + number),
          &end = blocks_.add("after_for" + number);
    jump_and_go_on(head, head);
    at_ = span(s.span);
    if (stops_) stop_point(at_);
    Value results = operate("call", {get(f), Value::list({get(state), get(control)})}, nullptr);
    std::vector<Variable> values;
    for (size_t i = 0; i < s.variables.size(); ++i) {
        values.push_back(blocks_.temporary(s.variables[i]->name));
        blocks_.write(*here_, values[i], emit("result", {results, Value(static_cast<int64_t>(i))}));
    }
    blocks_.write(*here_, control, get(values[0]));
    blocks_.branch(*here_, emit("equal", {get(values[0]), Value()}), end, body, at_);
    blocks_.seal(body);
    const Scope scope(visible_);
    go_on_in(body);
    for (size_t i = 0; i < s.variables.size(); ++i) declare(*s.variables[i], get(values[i]));
    loop_ends_.push_back({&end, closing_.size()});
    block(*s.body);
    loop_ends_.pop_back();
    jump_and_go_on(head, end);
    blocks_.seal(head);
    blocks_.seal(end);
    close_down_to(open);
    closing_.resize(open);
}

}  // namespace lunaria::lower
