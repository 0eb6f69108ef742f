#include "jit/frontend/scope.h"

#include <algorithm>

namespace lunaria::lua {

Scope::Scope(Chunk& chunk, Name* environment_name)
    : chunk_(chunk), environment_name_(environment_name), environment_(chunk.make<Local>()), states_(1) {
    environment_->name = environment_name->text;
    environment_->kind = LocalKind::environment;
    environment_name->innermost = environment_;
}

void Scope::fail(const Span& span, std::string message, std::string hint) const {
    Problem problem;
    problem.span = span;
    problem.message = std::move(message);
    problem.hint = std::move(hint);
    throw SyntaxError(chunk_.name(), chunk_.source(), std::move(problem));
}

std::string Scope::describe(const Function& function) const {
    return function.parent ? str("function at line ", function.first_line) : "main function";
}

void Scope::open_function(Function* function) {
    if (depth_ > 0) current().nested.push_back(function);
    if (depth_ == functions_.size()) functions_.push_back(std::make_unique<OpenFunction>());
    function->parent = depth_ > 0 ? current().function : nullptr;
    ++depth_;
    OpenFunction& f = current();
    f.function = function;
    f.upvalues.clear();
    f.nested.clear();
    f.open_loops.clear();
    f.pending_locals = 0;
    f.first_active = active_.size();
    f.first_label = labels_.size();
    f.first_goto = gotos_.size();
    // Main always has _ENV as its first and only upvalue.
    if (depth_ == 1) f.upvalues.push_back({environment_, false, 0});
    open(false, true);
}

void Scope::close_function() {
    close_block();
    OpenFunction& f = current();
    f.function->upvalues = chunk_.keep(f.upvalues.data(), f.upvalues.size());
    f.function->functions = chunk_.keep(f.nested.data(), f.nested.size());
    --depth_;
}

void Scope::open_block(bool is_loop) {
    open(is_loop, false);
    if (is_loop) current().open_loops.push_back(++loop_serial_);
}

void Scope::open(bool is_loop, bool is_body) {
    blocks_.push_back({active_.size(), labels_.size(), gotos_.size(), is_loop, is_body});
}

void Scope::close_block() {
    const OpenBlock block = blocks_.back();
    blocks_.pop_back();
    for (; active_.size() > block.first_active; active_.pop_back())
        if (active_.back().local) active_.back().name->innermost = active_.back().shadowed;
    for (; labels_.size() > block.first_label; labels_.pop_back()) labels_.back().name->label = labels_.back().shadowed;
    if (block.is_loop) current().open_loops.pop_back();
    if (block.is_body) {
        if (gotos_.size() == block.first_goto) return;
        const Goto& jump = *gotos_[block.first_goto].jump;
        fail(jump.span, str("no visible label '", jump.name, "' for goto at line ", jump.span.line),
             "a goto reaches labels of its own function, in its own block or one around it");
    }
    // For the enclosing block, the goto is at the start of the inner block.
    for (std::size_t i = block.first_goto; i < gotos_.size(); ++i)
        gotos_[i].active = std::min(gotos_[i].active, block.first_active);
}

void Scope::check_local_limit(const Span& span) {
    OpenFunction& f = current();
    if (active_.size() - f.first_active + static_cast<std::size_t>(f.pending_locals) < std::size_t{kMaxLocals}) return;
    fail(span, str("too many local variables (limit is ", kMaxLocals, ") in ", describe(*f.function)),
         "put some of them into a table, or into a do … end block or a function of their own");
}

Local* Scope::declare(Name* name, const Span& span, LocalKind kind) {
    check_local_limit(span);
    OpenFunction& f = current();
    ++f.pending_locals;
    Local* local = chunk_.make<Local>();
    local->name = name->text;
    local->span = span;
    local->function = f.function;
    local->kind = kind;
    local->id = static_cast<std::uint32_t>(states_.size());
    states_.push_back({static_cast<std::uint32_t>(f.open_loops.size()), 0});
    return local;
}

void Scope::activate(Local* local, Name* name) {
    --current().pending_locals;
    active_.push_back({local, name, name->innermost});
    name->innermost = local;
}

void Scope::reserve_hidden(int count, const Span& span) {
    for (int i = 0; i < count; ++i) {
        check_local_limit(span);
        active_.push_back({nullptr, nullptr, nullptr});
    }
}

const Expr* Scope::resolve(Name* name, const Span& span) {
    Local* local = name->innermost;
    if (!local) {
        auto* global = chunk_.make<GlobalName>();
        global->span = span;
        global->name = name->text;
        global->environment = resolve(environment_name_, span);
        return global;
    }
    if (local->constant) {
        auto* use = chunk_.make<ConstantName>();
        use->span = span;
        use->local = local;
        return use;
    }
    if (local->function == current().function) {
        auto* use = chunk_.make<LocalName>();
        use->span = span;
        use->local = local;
        return use;
    }
    auto* use = chunk_.make<UpvalueName>();
    use->span = span;
    use->local = local;
    use->index = capture(depth_, local, span);
    return use;
}

// The index of the local among the upvalues of the function at this depth; adds it there and, first, to the functions
// around.
std::uint32_t Scope::capture(std::size_t depth, Local* local, const Span& span) {
    OpenFunction& f = *functions_[depth - 1];
    for (std::size_t i = 0; i < f.upvalues.size(); ++i)
        if (f.upvalues[i].local == local) return static_cast<std::uint32_t>(i);
    const OpenFunction& parent = *functions_[depth - 2];
    Upvalue upvalue{local, parent.function == local->function, 0};
    if (upvalue.from_parent_local)
        note_capture(parent, local);
    else
        upvalue.parent_index = capture(depth - 1, local, span);
    if (f.upvalues.size() >= std::size_t{kMaxUpvalues})
        fail(span, str("too many upvalues (limit is ", kMaxUpvalues, ") in ", describe(*f.function)),
             "put the outer variables that this function uses into a table");
    f.upvalues.push_back(upvalue);
    return static_cast<std::uint32_t>(f.upvalues.size() - 1);
}

void Scope::note_capture(const OpenFunction& owner, Local* local) {
    local->captured = true;
    const LocalState& state = states_[local->id];
    // An assignment further up in a loop that is still open runs again after this.
    if (state.assigned_loop != 0 && owner.open_loops.size() > state.loop_depth &&
        owner.open_loops[state.loop_depth] == state.assigned_loop)
        local->assigned_after_capture = true;
}

void Scope::assign(const Expr& target, const Span& found) {
    const Local* seen = nullptr;
    if (const auto* name = target.get_if<LocalName>())
        seen = name->local;
    else if (const auto* name = target.get_if<UpvalueName>())
        seen = name->local;
    else if (const auto* name = target.get_if<ConstantName>())
        seen = name->local;
    if (!seen) return;
    if (seen->attribute != Attribute::none)
        fail(found, str("attempt to assign to const variable '", seen->name, "'"),
             str("it is declared <", seen->attribute == Attribute::close ? "close" : "const", "> at line ",
                 seen->span.line));
    Local* local = const_cast<Local*>(seen);  // not const: declare() made it
    local->assigned = true;
    if (local->captured) local->assigned_after_capture = true;
    const OpenFunction& f = current();
    LocalState& state = states_[local->id];
    if (local->function == f.function && f.open_loops.size() > state.loop_depth)
        state.assigned_loop = f.open_loops[state.loop_depth];
}

// The limit of visible labels or unresolved gotos: matching them takes time in the product of their numbers.
void Scope::check_jump_limit(std::size_t count, const Span& span) const {
    if (count < std::size_t{kMaxJumps}) return;
    fail(span, str("too many labels/gotos (limit is ", kMaxJumps, ")"), "put parts of the chunk into functions");
}

void Scope::add_label(Label* label, Name* name, bool ends_block) {
    const OpenFunction& f = current();
    if (name->label >= static_cast<int>(f.first_label))
        fail(label->span,
             str("label '", name->text, "' already defined on line ",
                 labels_[static_cast<std::size_t>(name->label)].label->span.line),
             "labels of a function have different names, unless their blocks lie side by side");
    const OpenBlock& block = blocks_.back();
    label->ends_block = ends_block;
    check_jump_limit(labels_.size(), label->span);
    const std::size_t active = ends_block ? block.first_active : active_.size();
    labels_.push_back({label, name, name->label, active});
    name->label = static_cast<int>(labels_.size() - 1);

    std::size_t kept = block.first_goto;
    for (std::size_t i = block.first_goto; i < gotos_.size(); ++i) {
        const PendingGoto& jump = gotos_[i];
        if (jump.name != name) {
            gotos_[kept++] = jump;
            continue;
        }
        if (jump.active < active) {
            const Local* local = active_[jump.active].local;
            fail(jump.jump->span,
                 str("<goto ", name->text, "> at line ", jump.jump->span.line, " jumps into the scope of local '",
                     local ? local->name : "(for state)", "'"),
                 local ? str("declare '", local->name, "' before the goto, or enclose its use in do … end")
                       : std::string());
        }
        jump.jump->target = label;
    }
    gotos_.resize(kept);
}

void Scope::add_goto(Goto* jump, Name* name) {
    const OpenFunction& f = current();
    if (name->label < static_cast<int>(f.first_label)) {
        check_jump_limit(gotos_.size(), jump->span);
        gotos_.push_back({jump, name, active_.size()});
        return;
    }
    const OpenLabel& label = labels_[static_cast<std::size_t>(name->label)];
    jump->target = label.label;
    jump->backward = true;
    // Statements between the label and the goto run again, so that an assignment there may follow a capture there.
    for (std::size_t i = f.first_active; i < label.active; ++i) {
        Local* local = active_[i].local;
        if (local && local->captured && local->assigned) local->assigned_after_capture = true;
    }
}

}  // namespace lunaria::lua
