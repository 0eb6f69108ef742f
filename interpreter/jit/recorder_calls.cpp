// Instructions, calls and the library's functions, watched.
#include <algorithm>

#include "core/element.h"
#include "interpreter/host/lua_reference.h"
#include "interpreter/jit/open_sizes.h"
#include "interpreter/jit/recorder.h"
#include "jit/language.h"
#include "jit/number.h"

namespace lunaria::jit {

namespace {

template <size_t N>
bool one_of(std::string_view name, const std::string_view (&list)[N]) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// Instructions that hand values on without looking at them.
bool only_moves(std::string_view name) {
    static constexpr std::string_view kMovers[] = {"call",
                                                   "j_call",
                                                   "closure",
                                                   "table",
                                                   "table_extend",
                                                   "new_table",
                                                   "cell",
                                                   "cell_set",
                                                   "cell_get",
                                                   "spread",
                                                   "result",
                                                   "results_from",
                                                   "list_at",
                                                   "list_shift",
                                                   "list_concat",
                                                   "list_length",
                                                   "current_function",
                                                   "not",
                                                   "stop_point",
                                                   "source",
                                                   "touch",
                                                   "mark",
                                                   "box_of",
                                                   "content",
                                                   "unless",
                                                   "follow",
                                                   "stop",
                                                   "unmark",
                                                   "pull",
                                                   "j_pull",
                                                   "accumulate",
                                                   "shadow_take",
                                                   "to_number",
                                                   "number_like",
                                                   "number_tensor"};
    return one_of(name, kMovers);
}

// The same but for the operand in the middle, a key or a position.
bool moves_last(std::string_view name) {
    static constexpr std::string_view kMovers[] = {"shadow_put", "shadow_add", "shadow_items", "shadow_add_items",
                                                   "mark_arguments"};
    return one_of(name, kMovers);
}

// Calls whose result says what kind of things the arguments are or how many, and so does not depend on what is
// followed.
bool tells_kind(Native which, const vm::Values& args) {
    switch (which) {
        case Native::select:
            return !args.empty() && args[0].kind() == Value::Kind::string;
        case Native::type_of:
        case Native::get_metatable:
        case Native::is_tensor:
        case Native::is_parameter:
            return true;
        default:
            return false;
    }
}

// Arithmetic that gives the same whether an operand is a number or a tensor of that number.
bool takes_tensors(const Op& op) {
    static constexpr std::string_view kExact[] = {"add", "sub", "mul", "div"};
    return one_of(op.name(), kExact);
}

// Whether the machine follows numbers through the instruction without looking at them: arithmetic, and functions of
// numbers within Lua's own.
bool has_rule(std::string_view name, const vm::Instr& i, bool listed) {
    static constexpr std::string_view kOperations[] = {"less",    "less_equal", "equal",      "concat",
                                                       "length",  "bit_and",    "bit_or",     "bit_xor",
                                                       "bit_not", "shift_left", "shift_right"};
    return !one_of(name, kOperations) && (listed || i.order == 0);
}

bool is_arithmetic(std::string_view name) {
    static constexpr std::string_view kArithmetic[] = {"add", "sub", "mul", "div", "mod", "pow", "floor_div", "minus"};
    return one_of(name, kArithmetic);
}

}  // namespace

bool Recorder::step(vm::Machine& m, const vm::Instr& i) {
    static const Op &closes = lua::primitive("to_close"), &arithmetic = lua::primitive("j_arith"),
                    &operation = lua::primitive("j_op"), &gets = lua::primitive("cell_get"),
                    &sets = lua::primitive("cell_set"), &begins = lua::primitive("seed"),
                    &touches = lua::primitive("touch");
    // Lua calls the handler first, the machine closes first.
    if (handles_errors_ && i.op == &closes) stop("a variable is closed on the way to xpcall");
    instr_ = &i;
    if (!foreign_.empty() && (i.op == &gets || i.op == &sets) && foreign_.contains(m.operand(i, 0).object()))
        stop("a variable is used of a function that was made within a derivative or a compiled function");
    // Rules of derivatives look at the sizes of what they are for.
    if (open_tensors_ > 0 && (i.order > 0 || m.depth > 0)) decide_shapes();
    if (loops_.step(m, i)) return true;
    if (!open_) return false;
    bool any = false;
    auto look = [&](const auto& self, const vm::Slot& s) -> void {
        if (s.items >= 0) {
            for (const vm::Slot& item : m.items(s)) self(self, item);
        } else if (s.at >= 0) {
            any |= holds_open(m.get(s));
        }
    };
    for (uint32_t k = 0; k < i.slot_count; ++k) look(look, m.slot(i, k));
    if (!any) return false;

    const std::string_view name = i.op ? i.op->name() : std::string_view();
    const bool moves = !i.op || (i.op->belongs_to(lua::language()) && only_moves(name));
    // Of writes into tables the last operand is only handed on.
    const bool writes = name == "raw_set" || name == "set_index" || name == "j_set_index";
    if (moves && stopped_.empty()) {
        if (i.op == &touches && vm::marks_of(m.value(m.slot(i, 2))) != 0)
            keep_key(m, m.operand(i, 0), m.operand(i, 1), m.operand(i, 3));
        return false;
    }
    if (i.op && i.op->belongs_to(lua::language()) && moves_last(name) && stopped_.empty()) {
        if (const vm::Slot& key = m.slot(i, 1); key.at >= 0 && holds_open(m.get(key)))
            m.reg(key.at) = decided(m.get(key));
        return false;
    }
    if (i.op == &begins && stopped_.empty()) {
        // A number, which has one as its cotangent.
        const Value& values = m.operand(i, 1);
        if (values.is_list() && !values.items().empty() && open_number(values.items()[0]) &&
            open_number(values.items()[0])->value.is_number())
            return false;
    }
    const bool numbers = i.op && i.op->belongs_to(lua::language()) && lua::is_number_primitive(*i.op);
    // The forms of derivatives have their operands in a list.
    const bool listed = i.node && (i.node->op == &arithmetic || i.node->op == &operation) && m.slot(i, 2).items >= 0;
    std::vector<vm::Slot> slots;
    if (listed) {
        const auto items = m.items(m.slot(i, 2));
        slots.assign(items.begin(), items.end());
    } else {
        for (uint32_t k = 0; k < i.slot_count; ++k) slots.push_back(m.slot(i, k));
    }
    const bool spelled = std::ranges::all_of(slots, [](const vm::Slot& s) { return s.items < 0; });
    auto give = [&](Value v) {
        if (!listed) return m.set(i, std::move(v));
        if (i.node->op == &operation) {
            if (i.r_out >= 0) m.reg(i.r_out) = Value();
            return m.set(i, std::move(v));
        }
        vm::Destination to = vm::Machine::destination(i);
        to.results = 1;
        to.returns = false;
        m.give_one(to, std::move(v), {});
    };
    if (name == "concat" && spelled && stopped_.empty()) {
        vm::Values args, real;
        bool text = true;
        uint16_t marks = 0;
        for (const vm::Slot& slot : slots) {
            args.push_back(m.get(slot));
            real.push_back(plain(args.back()));
            marks |= args.back().marks();
            text &= real.back().is_number() || real.back().kind() == Value::Kind::string;
        }
        if (text) {
            Step s(Step::Kind::number, *i.op, operands(args), {});
            Value whole =
                event(std::move(s), [&](vm::Values& values) { values.push_back(host_.concat(real[0], real[1])); })[0];
            // Nobody makes a number of it in silence.
            whole.set_marks(marks);
            give(std::move(whole));
            return true;
        }
    }
    if (name == "equal" && spelled && stopped_.empty() && slots.size() == 2) {
        // A number is never equal to what is none.
        const Value &a = vm::shown(m.get(slots[0])), &b = vm::shown(m.get(slots[1]));
        if (a.is_number() != b.is_number()) {
            give(Value(false));
            return true;
        }
    }
    if (numbers && spelled && stopped_.empty()) {
        vm::Values args, real;
        bool plain_numbers = true, tensor = false, marked = false;
        for (const vm::Slot& slot : slots) {
            const Value& v = m.get(slot);
            tensor |= v.is_tensor();
            marked |= v.marks() != 0;
            plain_numbers &= v.is_number() || open_number(v);
            args.push_back(v);
            real.push_back(plain(v));
        }
        // What is differentiated is a number of its own; whether it is less than another has no derivative.
        if (plain_numbers && (!marked || name == "less" || name == "less_equal" || name == "equal")) {
            Step s(Step::Kind::number, *i.op, operands(args), {});
            Value result;
            try {
                result = run_number(*i.op, real);
            } catch (const Error&) {
                // The machine raises it, for these numbers.
                result = Value();
            }
            if (!result.is_nil()) {
                give(event(std::move(s), [&](vm::Values& values) { values.push_back(result); })[0]);
                return true;
            }
        } else if (plain_numbers && has_rule(name, i, listed)) {
            // The machine computes it and keeps what its rule needs.
            return false;
        } else if (tensor && is_arithmetic(name) && args.size() <= 2) {
            // The machine asks for the operands as it can follow them.
            if (listed) return false;
            bool fits = !marked;
            for (const Value& v : args) fits &= v.is_tensor() || v.is_number() || open_number(v);
            const Op* op = host_.tensor_operator(name);
            if (fits && op) {
                const Value first = args[0], last = args.back();
                args[0] = beside(first, last, *i.op);
                if (args.size() > 1) args.back() = beside(last, first, *i.op);
                for (size_t k = args.size(); k < op->signature.params.size(); ++k)
                    args.push_back(op->signature.params[k].default_value);
                m.set(i, run(*op, args));
                return true;
            }
        }
    }
    if (spelled && slots.size() >= 2) put_beside(m, i, slots[0], slots[1]);
    // What is left wants the numbers themselves.
    auto settle = [&](const auto& self, const vm::Slot& s) -> void {
        if (s.items >= 0) {
            for (const vm::Slot& item : m.items(s)) self(self, item);
        } else if (s.at >= 0 && holds_open(m.get(s))) {
            m.reg(s.at) = decided(m.get(s));
        }
    };
    const uint32_t count = writes && stopped_.empty() ? i.slot_count - 1 : i.slot_count;
    const bool any_key = writes && leaves_key(m, i);
    for (uint32_t k = 0; k < count; ++k)
        if (!any_key || k + 1 != count) settle(settle, m.slot(i, k));
    return false;
}

// Within what stands for a call of an operator, whose registers are its own.
void Recorder::put_beside(vm::Machine& m, const vm::Instr& i, const vm::Slot& a, const vm::Slot& b) {
    if (!i.op || i.op->belongs_to(lua::language()) || !takes_tensors(*i.op)) return;
    const Value first = m.get(a), second = m.get(b);
    if (open_number(first)) m.reg(a.at) = beside(first, second, *i.op);
    if (open_number(second)) m.reg(b.at) = beside(second, first, *i.op);
}

// Whether the key under which the instruction writes may be another one the next time.
bool Recorder::leaves_key(vm::Machine& m, const vm::Instr& i) {
    if (!stopped_.empty() || i.slot_count < 3) return false;
    const auto* key = open_number(m.operand(i, i.slot_count - 2));
    const Value &object = m.operand(i, i.slot_count - 3), &value = m.operand(i, i.slot_count - 1);
    if (!key || key->value.kind() != Value::Kind::integer) return false;
    if (i.order > 1 || (value.marks() != 0 && (i.order == 0 || m.depth > 1))) return false;
    if (!takes_any_key(object)) return false;
    vm::Values kept;
    const std::span<const Value> contexts = i.order > 0 ? m.contexts_of(i, kept) : std::span<const Value>();
    auto known = open_keys_.find(vm::identity_of(object));
    for (const Value& c : contexts)
        if (known == open_keys_.end() && static_cast<vm::Context*>(c.object())->find(object)) return false;
    if (value.marks() != 0) open_keys_[vm::identity_of(object)].push_back(m.operand(i, i.slot_count - 2));
    return true;
}

// What is differentiated is about to be written into a table under an open key.
void Recorder::keep_key(vm::Machine& m, const Value& context, const Value& table, const Value& key) {
    const OpenNumber* number = open_number(key);
    if (!number || number->value.kind() != Value::Kind::integer || m.depth != 1 || !takes_any_key(table)) return;
    const bool known = open_keys_.contains(vm::identity_of(table));
    if (known || !static_cast<vm::Context*>(context.object())->find(table))
        open_keys_[vm::identity_of(table)].push_back(key);
}

void Recorder::decide_keys(const Value& table) {
    if (open_keys_.empty() || machine_.depth == 0) return;
    auto found = open_keys_.find(vm::identity_of(table));
    if (found == open_keys_.end()) return;
    const vm::Values keys = std::move(found->second);
    open_keys_.erase(found);
    for (const Value& key : keys) decided(key);
}

// A tensor goes into graphs and has rules for derivatives; a number would part the graph in two.
Value Recorder::beside(const Value& v, const Value& other, const Op& primitive) {
    const auto* number = open_number(v);
    if (!number) return v;
    const bool fits =
        other.is_tensor() && (other.tensor().dtype() == DType::f32 || other.tensor().dtype() == DType::f64);
    if (!fits || !number->value.is_number() || v.marks() || !stopped_.empty() || !takes_tensors(primitive)) return v;
    return tensor_of(v, other.tensor().dtype(), {});
}

Value Recorder::tensor_of(const Value& v, DType dtype, const Shape& shape) {
    const OpenNumber* number = open_number(v);
    if (!stopped_.empty()) return Value(Tensor::full(dtype, shape, number->value.number()));
    if (shape.rank() > 0) {
        static const Op& spread = registry().get("broadcast_to");
        const Value args[] = {tensor_of(v, dtype, {}), Value::ints(shape)};
        return run(spread, args);
    }
    const std::string id =
        question(dtype == DType::f32 ? 'f' : 'd', nullptr, Value(static_cast<int64_t>(number->slot)));
    if (auto found = found_.find(id); found != found_.end()) return found->second;
    Step s(Step::Kind::scalar, {node_at(number->slot), Value(dtype)});
    const Value tensor =
        event(std::move(s), [&](vm::Values& values) { values.push_back(scalar_tensor(number->value, dtype)); })[0];
    if (stopped_.empty()) found_[id] = tensor;
    return tensor;
}

Value Recorder::compute(const Op& primitive, std::span<const Value> operands) {
    vm::Values real;
    for (const Value& v : operands) real.push_back(plain(v));
    if (!stopped_.empty()) return run_number(primitive, real);
    Value result;
    try {
        result = run_number(primitive, real);
    } catch (const Error&) {
        // It is one for these numbers.
        for (const Value& v : operands) decided(v);
        throw;
    }
    return event(Step(Step::Kind::number, primitive, this->operands(operands), {}),
                 [&](vm::Values& values) { values.push_back(result); })[0];
}

// What is left open is computed with as it is, or becomes a tensor beside one.
void Recorder::settle_operands(const Op& primitive, vm::Values& operands) {
    if (std::ranges::none_of(operands, [](const Value& v) { return open_number(v) != nullptr; })) return;
    bool numbers = true, tensor = false, exact = true;
    for (const Value& v : operands) {
        numbers &= v.is_tensor() || vm::shown(v).is_number();
        tensor |= v.is_tensor();
        if (v.is_tensor()) exact &= v.tensor().dtype() == DType::f32 || v.tensor().dtype() == DType::f64;
    }
    if (stopped_.empty() && numbers && !tensor) return;
    const Value first = operands[0], last = operands.back();
    operands[0] = beside(first, last, primitive);
    if (operands.size() > 1) operands.back() = beside(last, first, primitive);
    if (stopped_.empty() && numbers && exact) return;
    for (Value& v : operands) v = decided(v);
}

bool Recorder::takes_followed(Native which, const Value& f, const vm::Values& args) {
    if (which == Native::local && host_.is_harmless(f)) return true;
    for (const Value& v : args)
        if (const auto* number = open_number(v); number && v.marks() && !number->value.is_number()) return false;
    const LuaReference* r = vm::object_as<LuaReference>(f);
    if (r && (r->type != LUA_TFUNCTION || (which != Native::unknown && which != Native::pure))) return false;
    const vm::Callee::Kind kind = host_.resolve(f).kind;
    return kind == vm::Callee::Kind::function || kind == vm::Callee::Kind::closure || kind == vm::Callee::Kind::op;
}

bool Recorder::before_call(vm::Machine& m, const Value& f, std::span<const Value> contexts, vm::Values& args,
                           const vm::Destination& to) {
    const bool itself = contexts.empty() && host_.is_in_derivatives(f);
    if (!stopped_.empty()) {
        for (Value& v : args) v = plain(v);
        if (itself) m.call_host(f, contexts, std::move(args), to);
        return itself;
    }
    const uint16_t followed = vm::followed_by(contexts);
    uint16_t bits = 0;
    for (const Value& v : args) bits |= vm::marks_of(v);
    auto* r = vm::object_as<LuaReference>(f);
    Native which = Native::unknown;
    if (r && r->type == LUA_TFUNCTION) {
        lua_State* L = host_.lua();
        luaL_checkstack(L, 4, "call");
        r->push(L);
        which = natives_.find(L, -1);
        lua_pop(L, 1);
    }
    if ((bits & followed) && !tells_kind(which, args)) {
        vm::Values texts;
        if (which == Native::text && native(m, which, f, args, texts)) {
            for (Value& v : texts) v.set_marks(followed);
            m.give(to, std::move(texts), {});
            return true;
        }
        // A number that is differentiated is a value of its own for who looks at it.
        if (!takes_followed(which, f, args))
            for (Value& v : args)
                if (v.marks() & followed) v = decided(v);
        return false;
    }
    vm::Values results;
    if (which == Native::unknown || !native(m, which, f, args, results)) {
        if (itself) m.call_host(f, contexts, std::move(args), to);
        return itself;
    }
    m.give(to, std::move(results), {});
    return true;
}

// False: it is called as any other function.
bool Recorder::native(vm::Machine&, Native which, const Value& f, vm::Values& args, vm::Values& results) {
    auto really = [&] {
        vm::Values given;
        if (catching_ == 0) {
            Unwatched unwatched;
            return host_.call(f, args);
        }
        if (!attempt(
                machine_.span(), [&](vm::Values& values) { values = host_.call(f, args); }, given))
            raise(given[0]);
        return given;
    };
    switch (which) {
        case Native::type_of: {
            if (args.empty()) return false;
            const Value v = open_number(args[0]) ? open_number(args[0])->value : args[0];
            if (vm::object_as<vm::Closure>(v)) {
                results.push_back(Value("function"));
                return true;
            }
            args.resize(1);
            args[0] = v;
            results = really();
            return true;
        }
        case Native::select: {
            if (args.empty()) return false;
            if (args[0].kind() == Value::Kind::string && args[0].string() == "#") {
                results.push_back(Value(static_cast<int64_t>(args.size()) - 1));
                return true;
            }
            const Value n = decided(args[0]);
            const auto given = static_cast<int64_t>(args.size()) - 1;
            if (n.kind() != Value::Kind::integer || n.integer() == 0 || n.integer() < -given) return false;
            int64_t k = n.integer() < 0 ? given + n.integer() + 1 : n.integer();
            for (; k <= given; ++k) results.push_back(std::move(args[static_cast<size_t>(k)]));
            return true;
        }
        case Native::get_metatable: {
            if (args.size() != 1) return false;
            const Value v = open_number(args[0]) ? open_number(args[0])->value : args[0];
            if (v.is_tensor() || v.kind() == Value::Kind::dtype) {
                results = really();
                return true;
            }
            Value table = metatable(v);
            if (!table.is_nil()) {
                Value guarded = read(table, Value("__metatable"));
                if (!guarded.is_nil()) table = guarded;
            }
            results.push_back(std::move(table));
            return true;
        }
        case Native::set_metatable: {
            if (args.size() != 2 || !is_table(args[0]) || !own(args[0])) {
                stop("setmetatable changes a table from outside");
                return false;
            }
            const Value& table = args[1];
            if (!table.is_nil() && !is_table(table)) return false;
            if (!table.is_nil() && (!read(table, Value("__gc")).is_nil() || !read(table, Value("__mode")).is_nil()))
                stop("a metatable with __gc or __mode is used");
            if (const Value old = metatable(args[0]); !old.is_nil() && !read(old, Value("__metatable")).is_nil())
                return false;
            loops_.wrote(own(args[0])->number);
            results = really();
            return true;
        }
        case Native::next_key:
            if (args.size() != 2 || !is_table(args[0])) return false;
            results.push_back(next_key(args[0], decided(args[1])));
            return true;
        case Native::pairs:
            if (args.size() != 1 || !is_table(args[0]) || !meta(args[0], "__pairs").is_nil()) return false;
            results = really();
            return true;
        case Native::ipairs:
            if (args.size() != 1 || !is_table(args[0])) return false;
            results = really();
            return true;
        case Native::raw_equal:
            if (args.size() != 2) return false;
            for (Value& v : args) v = decided(v);
            if (args[0].is_tensor() || args[1].is_tensor()) {
                results.push_back(Value(vm::identity_of(args[0]) == vm::identity_of(args[1])));
                return true;
            }
            results = really();
            return true;
        case Native::raw_length:
            if (args.size() != 1 || !is_table(args[0])) return false;
            results.push_back(length_of(args[0]));
            return true;
        case Native::item: {
            if (args.size() == 1) decide_shape(args[0]);
            if (args.size() != 1 || !args[0].is_tensor() || args[0].tensor().size() != 1 ||
                is_complex(args[0].tensor().dtype()))
                return false;
            results = event(Step(Step::Kind::item, {operand(args[0])}),
                            [&](vm::Values& values) { values.push_back(element(args[0].tensor(), 0)); });
            return true;
        }
        case Native::is_tensor:
        case Native::is_parameter:
            for (Value& v : args) v = plain(v);
            if (args.size() != 1 || vm::object_as<vm::Closure>(args[0])) {
                results.push_back(Value(false));
                return true;
            }
            results = really();
            return true;
        case Native::error:
            for (Value& v : args) v = decided(v);
            return false;
        case Native::check: {
            const bool wrong =
                args.empty() || args[0].is_nil() || (args[0].kind() == Value::Kind::boolean && !args[0].boolean());
            if (!wrong) results = std::move(args);
            return !wrong;
        }
        case Native::handler:
            handles_errors_ = true;
            return false;
        case Native::itself:
            if (args.empty()) return false;
            results.push_back(args[0]);
            return true;
        case Native::inside:
            results.push_back(Value(true));
            return true;
        case Native::ignored:
            return true;
        case Native::refused:
            stop(str(host_.describe(f), " is called"));
            return false;
        case Native::shape:
        case Native::rank:
            for (Value& v : args) {
                v = decided(v);
                if (which == Native::shape) decide_shape(v);
            }
            results = really();
            return true;
        case Native::text:
        case Native::pure: {
            bool open = false;
            for (const Value& v : args) {
                if (!is_plain(v) && !open_number(v)) return false;
                open |= open_number(v) != nullptr;
                refuse_metamethod(vm::shown(v), "__tostring");
            }
            if (open) {
                // Functions of numbers are instructions of the machine; of others the result stays open.
                if (host_.resolve(f).kind == vm::Callee::Kind::function) return false;
                Step s(Step::Kind::call, {operand(f), Value::list(operands(args))});
                s.opens = true;
                vm::Values real;
                for (const Value& v : args) real.push_back(plain(v));
                results = event(std::move(s), [&](vm::Values& values) { values = host_.call(f, real); });
                return true;
            }
            results = really();
            for (Value& v : results)
                if (!is_plain(v)) v = adopt(v);
            return true;
        }
        default:
            return false;
    }
}

// A function that only Lua can run: an effect, done again at each call.
vm::Values Recorder::call(const Value& f, std::span<const Value> args) {
    if (!stopped_.empty()) {
        vm::Values real;
        for (const Value& v : args) real.push_back(plain(v));
        Unwatched unwatched;
        return host_.call(f, real);
    }
    lua_State* L = host_.lua();
    luaL_checkstack(L, 4, "call");
    host_.push(L, f);
    const bool function = lua_isfunction(L, -1);
    const Native which = function ? natives_.find(L, -1) : Native::unknown;
    lua_pop(L, 1);
    if (!function || which == Native::error) {
        // It raises an error.
        vm::Values real;
        for (const Value& v : args) real.push_back(plain(v));
        Unwatched unwatched;
        return host_.call(f, real);
    }
    // Their metamethods may do anything.
    bool calls_back = false;
    for (const Value& v : args) calls_back |= is_table(v) && !metatable(v).is_nil();
    const bool looks =
        (which == Native::reader || which == Native::pure || which == Native::text || which == Native::check) &&
        !calls_back;
    if (looks)
        for (const Value& v : args)
            if (is_table(v) && !own(v)) read_all(v);
    std::vector<Value> arguments;
    const Value callee = given(f);
    for (const Value& v : args) arguments.push_back(given(v));
    Step s(Step::Kind::call, {callee, Value::list(std::move(arguments))});
    s.effect = !looks && which != Native::shape && which != Native::rank;
    const bool unknown = s.effect && (which != Native::local || calls_back);
    vm::Values real;
    for (const Value& v : args) real.push_back(outward(v));
    vm::Values results = event(std::move(s), [&](vm::Values& values) { values = host_.call(f, real); });
    if (unknown) {
        // Only what numbers were decided to be still holds.
        std::erase_if(found_, [](const auto& entry) { return entry.first[0] != '='; });
    }
    return results;
}

vm::Host::Bound Recorder::bind(const Op& op, std::span<const Value> args) {
    vm::Values real;
    bool open = false;
    OpenSizes sizes(*this, args);
    for (const Value& v : args) {
        if (stopped_.empty() && is_table(v)) read_all(v);
        open |= open_number(v) != nullptr;
        real.push_back(plain(v));
    }
    Unwatched unwatched;
    Bound bound = sizes.bind(op, real);
    if (!stopped_.empty()) return bound;
    auto note = [&](const auto& self, const Value& v) -> void {
        if (v.is_list())
            for (const Value& item : v.items()) self(self, item);
        // Made of plain values, of which all are known.
        if (v.is_tensor() && !slot_of_.contains(vm::identity_of(v))) made(v);
    };
    for (const Value& v : bound.args) note(note, v);
    if (!open) return bound;
    // An open number that an operator takes as it is stays one.
    std::vector<bool> stays(args.size());
    for (size_t i = 0; i < bound.args.size(); ++i) {
        if (bound.paths[i].size() != 1 || !bound.paths[i][0].name.is_nil()) continue;
        const size_t k = bound.paths[i][0].argument;
        if (!open_number(args[k]) || !identical(real[k], bound.args[i])) continue;
        bound.args[i] = takes_tensors(op) && i < 2 ? beside(args[k], bound.args[1 - i], op) : args[k];
        stays[k] = true;
    }
    for (size_t k = 0; k < args.size(); ++k)
        if (open_number(args[k]) && !stays[k]) decided(args[k]);
    return bound;
}

}  // namespace lunaria::jit
