// Lua's operations on behalf of the machine.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/base/visit.h"
#include "core/ops/indexing.h"
#include "interpreter/events.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/lua_reference.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/tensor_index.h"
#include "interpreter/values/tensor_methods.h"
#include "interpreter/values/values.h"
#include "jit/frontend/ast.h"
#include "jit/language.h"

namespace lunaria {

using vm::Field;

namespace {

LuaReference* reference_of(const Value& v) { return vm::object_as<LuaReference>(v); }

// Values that can be indexed only if the program has given their type a metatable.
bool is_basic(const Value& v) { return v.is_nil() || v.kind() == Value::Kind::boolean || v.is_number(); }

}  // namespace

UpvalueCell::UpvalueCell(LuaHost& host, Value function, lua_State* L, int index, int position)
    : host_(host), function_(std::move(function)), position_(position), identity_(lua_upvalueid(L, index, position)) {}

Value UpvalueCell::get() const {
    lua_State* L = host_.lua();
    host_.push(L, function_);
    lua_getupvalue(L, -1, position_);
    Value v = host_.to_value(L, -1);
    lua_pop(L, 2);
    return v;
}

void UpvalueCell::set(Value v) {
    lua_State* L = host_.lua();
    host_.push(L, function_);
    host_.push(L, v);
    lua_setupvalue(L, -2, position_);
    lua_pop(L, 1);
}

// Follows the chain of metatables from object[key] for reading (`__index`) or writing (`__newindex`).
Field LuaHost::follow_chain(const Value& object, const Value& key, const char* event) {
    luaL_checkstack(L, 10, "index");
    const int base = lua_gettop(L);
    Field field;
    field.holder = object;
    push(L, object);
    FieldNames::Name* name = nullptr;
    if (key.kind() == Value::Kind::string) {
        name = &names_.push(L, key);
        // Mostly the table itself has the field.
        if (lua_rawget(L, base + 1) != LUA_TNIL) {
            field.raw = true;
            field.value = names_.value_by(L, *name);
            lua_settop(L, base);
            return field;
        }
        lua_settop(L, base + 1);
        names_.push(L, key);
    } else {
        push(L, key);
    }
    for (int i = 0; i < vm::kMostMetatables; ++i) {
        // On the stack: the table, the key.
        lua_pushvalue(L, base + 2);
        if (lua_rawget(L, base + 1) != LUA_TNIL || luaL_getmetafield(L, base + 1, event) == LUA_TNIL) {
            field.raw = true;
            lua_settop(L, base + 3);
            field.value = name ? names_.value_by(L, *name) : to_value(L, base + 3);
            break;
        }
        if (lua_isfunction(L, -1)) {
            field.method = to_value(L, -1);
            break;
        }
        field.holder = to_value(L, -1);
        if (!lua_istable(L, -1)) break;
        lua_copy(L, -1, base + 1);
        lua_settop(L, base + 2);
    }
    lua_settop(L, base);
    return field;
}

Field LuaHost::find_field(const Value& object, const Value& key) {
    Field field = follow_chain(object, key, "__index");
    if (!field.raw && field.method.is_nil()) {
        // The chain ends in another object, such as a userdata: the field is the result of indexing it.
        field.raw = true;
        field.value = index(field.holder, key);
        field.holder = object;
    }
    return field;
}

Field LuaHost::find_new_field(const Value& object, const Value& key) {
    Field field = follow_chain(object, key, "__newindex");
    if (!field.raw && field.method.is_nil()) field.holder = object;
    return field;
}

Value LuaHost::metamethod(const Value& a, const Value& b, std::string_view event) {
    luaL_checkstack(L, 6, "metamethod");
    for (const Value* v : {&a, &b}) {
        // Strings and numbers: Lua's own arithmetic.
        if (!reference_of(*v) && !v->is_tensor()) continue;
        const int base = lua_gettop(L);
        push_briefly(*v);
        Value method;
        if (luaL_getmetafield(L, -1, std::string(event).c_str()) != LUA_TNIL) method = to_value(L, -1);
        forget(base + 1);
        lua_settop(L, base);
        if (!method.is_nil()) return method;
    }
    return {};
}

Value LuaHost::index(const Value& object, const Value& key) {
    luaL_checkstack(L, 6, "index");
    const int base = lua_gettop(L);
    if (object.is_tensor() && !(key.kind() == Value::Kind::string && !is_slice_text(key.string()))) {
        push(L, key);
        Value v(index_tensor(L, object.tensor(), lua_gettop(L)));
        lua_settop(L, base);
        return v;
    }
    push_briefly(object);
    if (is_basic(object) && luaL_getmetafield(L, base + 1, "__index") == LUA_TNIL) {
        lua_settop(L, base);
        operand_error("index", object);
    }
    lua_settop(L, base + 1);
    push(L, key);
    lua_gettable(L, base + 1);
    Value v = to_value(L, -1);
    if (!lua_rawequal(L, base + 1, base + 2)) forget(base + 1);
    lua_settop(L, base);
    return v;
}

void LuaHost::push_briefly(const Value& v) {
    if (v.is_tensor()) return push_shared(L, v.tensor());
    push(L, v);
}

void LuaHost::forget(int index) {
    if (tensor_at(L, index)) set_tensor(L, index, Tensor());
}

void LuaHost::set_index(const Value& object, const Value& key, const Value& value) {
    luaL_checkstack(L, 6, "index");
    const int base = lua_gettop(L);
    push(L, object);
    if (is_basic(object) && luaL_getmetafield(L, base + 1, "__newindex") == LUA_TNIL) {
        lua_settop(L, base);
        operand_error("index", object);
    }
    lua_settop(L, base + 1);
    push(L, key);
    push(L, value);
    const bool named = key.kind() == Value::Kind::string && !is_part(key);
    if (object.is_tensor() && !named)
        set_by_index(L, base + 1, base + 2, base + 3);
    else
        lua_settable(L, base + 1);
    lua_settop(L, base);
}

vm::Values LuaHost::call(const Value& f, std::span<const Value> args) {
    luaL_checkstack(L, static_cast<int>(args.size()) + 8, "too many arguments");
    const int base = lua_gettop(L) + 1;
    State::of(main_).events().push_call_handler(L);
    push(L, f);
    if (!lua_isfunction(L, -1) && luaL_getmetafield(L, -1, "__call") == LUA_TNIL) {
        lua_settop(L, base - 1);
        // pcall called it, which has no line.
        if (running_->caller().empty()) raise(Value(str("attempt to call a ", type_text(f), " value")));
        operand_error("call", f);
    }
    lua_settop(L, base + 1);
    for (const Value& v : args) push(L, v);
    if (lua_pcall(L, static_cast<int>(args.size()), LUA_MULTRET, base) != LUA_OK) {
        // Errors of C functions name the Lua line of the call; here that is a line of the machine's program.
        complete_message(f, running_->caller(), running_->calls_method());
        lua_error(L);
    }
    vm::Values results;
    for (int i = base + 1, n = lua_gettop(L); i <= n; ++i) results.push_back(to_value(L, i));
    lua_settop(L, base - 1);
    return results;
}

namespace {

// Of two numbers, the one that an operation on bits cannot have: 1, 2, or 0 for none.
int fraction_among(const lua::Facts& facts, const Value& a, const Value& b) {
    if (!facts.is_bits() || !a.is_number() || !b.is_number()) return 0;
    const auto fits = [](const Value& v) {
        lua_Integer whole = 0;
        return v.kind() == Value::Kind::integer || lua_numbertointeger(std::floor(v.number()), &whole);
    };
    const auto exact = [&](const Value& v) { return fits(v) && std::floor(v.number()) == v.number(); };
    return !exact(a) ? 1 : !exact(b) ? 2 : 0;
}

// lua_arith() takes the operation's number.
using lua::Operation;
static_assert(static_cast<int>(Operation::mod) == LUA_OPMOD && static_cast<int>(Operation::div) == LUA_OPDIV &&
              static_cast<int>(Operation::bit_and) == LUA_OPBAND && static_cast<int>(Operation::minus) == LUA_OPUNM);

bool has_event(lua_State* L, int index, const char* event) {
    const bool has = luaL_getmetafield(L, index, event) != LUA_TNIL;
    if (has) lua_pop(L, 1);
    return has;
}

}  // namespace

Value LuaHost::arithmetic(const Op& primitive, const Value& a, const Value& b) {
    const lua::Facts& facts = lua::facts(primitive);
    if (const int fraction = fraction_among(facts, a, b))
        throw value_error("", str("number", operand_name(fraction == 2), " has no integer representation"));
    luaL_checkstack(L, 6, "arithmetic");
    const int base = lua_gettop(L);
    push(L, a);
    push(L, facts.is_unary() ? a : b);
    // Lua's words for operands without such a metamethod; the messages of strings name only the types.
    auto is_text = [&](int i) { return lua_type(L, i) == LUA_TSTRING; };
    const bool bits = facts.is_bits();
    const bool texts = !bits && (is_text(base + 1) || is_text(base + 2));
    auto helpless = [&](int i) { return (texts && is_text(i)) || !has_event(L, i, facts.event); };
    if (!(a.is_number() && b.is_number()) && helpless(base + 1) && helpless(base + 2)) {
        const bool numbers = lua_isnumber(L, base + 1) && lua_isnumber(L, base + 2);
        const std::string words = str("attempt to ", facts.event + 2, " a '", luaL_typename(L, base + 1), "' with a '",
                                      luaL_typename(L, base + 2), "'");
        const bool second = lua_type(L, base + 1) == LUA_TNUMBER, wrong = bits || !numbers;
        if (wrong) lua_settop(L, base);
        if (wrong && texts) throw Error(ErrorKind::argument, "", words);
        if (wrong)
            operand_error(bits ? "perform bitwise operation on" : "perform arithmetic on", second ? b : a, second);
    }
    if (facts.is_unary()) lua_pop(L, 1);
    lua_arith(L, static_cast<int>(facts.operation));
    Value v = to_value(L, -1);
    lua_settop(L, base);
    return v;
}

bool LuaHost::compare(const Op& primitive, const Value& a, const Value& b) {
    const lua::Operation asked = lua::facts(primitive).operation;
    if (asked == lua::Operation::equal) {
        if (a.is_tensor() && b.is_tensor()) return same_or_equal(a.tensor(), b.tensor());
        // A saved program has dtypes as values; Lua has them as the objects in a tensor's field.
        const bool dtypes = a.kind() == Value::Kind::dtype || b.kind() == Value::Kind::dtype;
        if (!dtypes && (!reference_of(a) || !reference_of(b))) return vm::identity_of(a) == vm::identity_of(b);
    }
    luaL_checkstack(L, 6, "comparison");
    const int base = lua_gettop(L);
    push_briefly(a);
    push_briefly(b);
    auto has_order = [&](int i) { return luaL_getmetafield(L, i, lua::facts(primitive).event) != LUA_TNIL; };
    auto is_plain = [&](int i) { return lua_type(L, i) == LUA_TSTRING || lua_type(L, i) == LUA_TNUMBER; };
    if (asked != lua::Operation::equal) {
        const bool tensors = a.is_tensor() || b.is_tensor();
        const bool same = lua_type(L, base + 1) == lua_type(L, base + 2);
        const bool fine = tensors || (same && is_plain(base + 1)) || has_order(base + 1) || has_order(base + 2);
        lua_settop(L, base + 2);
        if (!fine) {
            lua_settop(L, base);
            throw Error(ErrorKind::argument, "",
                        same ? str("attempt to compare two ", type_text(a), " values")
                             : str("attempt to compare ", type_text(a), " with ", type_text(b)));
        }
    }
    static_assert(LUA_OPEQ == 0 && LUA_OPLT == 1 && LUA_OPLE == 2);
    const int operation = static_cast<int>(asked) - static_cast<int>(lua::Operation::equal);
    const bool result = lua_compare(L, base + 1, base + 2, operation) != 0;
    // A metamethod of a table or userdata may have kept the tensor.
    if (!reference_of(a) && !reference_of(b)) {
        forget(base + 1);
        forget(base + 2);
    }
    lua_settop(L, base);
    return result;
}

Value LuaHost::concat(const Value& a, const Value& b) {
    luaL_checkstack(L, 6, "concatenation");
    const int base = lua_gettop(L);
    push(L, a);
    push(L, b);
    auto is_text = [&](int i) { return lua_type(L, i) == LUA_TSTRING || lua_type(L, i) == LUA_TNUMBER; };
    if (!a.is_tensor() && !b.is_tensor() && !(is_text(base + 1) && is_text(base + 2)) &&
        luaL_getmetafield(L, base + 1, "__concat") == LUA_TNIL &&
        luaL_getmetafield(L, base + 2, "__concat") == LUA_TNIL) {
        const bool second = is_text(base + 1);
        lua_settop(L, base);
        operand_error("concatenate", second ? b : a, second);
    }
    lua_settop(L, base + 2);
    lua_concat(L, 2);
    Value v = to_value(L, -1);
    lua_settop(L, base);
    return v;
}

Value LuaHost::length(const Value& a) {
    if (!a.is_tensor() && a.kind() != Value::Kind::string && !reference_of(a)) operand_error("get length of", a);
    luaL_checkstack(L, 6, "length");
    const int base = lua_gettop(L);
    push_briefly(a);
    if (lua_type(L, -1) == LUA_TFUNCTION) {
        lua_settop(L, base);
        operand_error("get length of", a);
    }
    lua_len(L, -1);
    Value v = to_value(L, -1);
    forget(base + 1);
    lua_settop(L, base);
    return v;
}

Value LuaHost::new_table(size_t array, size_t fields) {
    luaL_checkstack(L, 4, "table");
    lua_createtable(L, static_cast<int>(array), static_cast<int>(fields));
    Value v = to_value(L, -1);
    lua_pop(L, 1);
    return v;
}

Value LuaHost::raw_get(const Value& table, const Value& key) {
    auto* r = reference_of(table);
    if (!r || r->type != LUA_TTABLE) return {};
    luaL_checkstack(L, 4, "index");
    r->push(L);
    push(L, key);
    lua_rawget(L, -2);
    Value v = to_value(L, -1);
    lua_pop(L, 2);
    return v;
}

void LuaHost::raw_set(const Value& table, const Value& key, const Value& value) {
    auto* r = reference_of(table);
    if (!r || r->type != LUA_TTABLE)
        throw argument_error("", str("bad argument #1 to 'rawset' (table expected, got ", describe(table), ")"));
    if (key.is_nil()) throw Error(ErrorKind::index, "", "table index is nil");
    if (key.kind() == Value::Kind::number && key.number() != key.number())
        throw Error(ErrorKind::index, "", "table index is NaN");
    luaL_checkstack(L, 4, "index");
    r->push(L);
    push(L, key);
    push(L, value);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

bool LuaHost::is_table(const Value& v) {
    auto* r = reference_of(v);
    return r && r->type == LUA_TTABLE;
}

bool LuaHost::is_function(const Value& v) {
    if (v.kind() != Value::Kind::object) return false;
    auto* r = reference_of(v);
    return r ? jit_target(v).object() != r || r->type == LUA_TFUNCTION : true;
}

// Lua's name for the type of the value on top of the stack: the name in its metatable, if any.
static std::string name_of_type(lua_State* L) {
    const int top = lua_gettop(L);
    std::string text = luaL_typename(L, top);
    const bool may_have_name = lua_istable(L, top) || lua_isuserdata(L, top);
    if (may_have_name && luaL_getmetafield(L, top, "__name") == LUA_TSTRING) text = lua_tostring(L, -1);
    lua_settop(L, top);
    return text;
}

std::string LuaHost::type_text(const Value& v) {
    luaL_checkstack(L, 4, "type");
    push(L, v);
    std::string text = v.is_tensor() ? "tensor" : name_of_type(L);
    lua_pop(L, 1);
    return text;
}

namespace {

// "string.format" for the function on top of the stack; empty if it is in no library.
std::string library_name(lua_State* L) {
    const int function = lua_gettop(L);
    std::string text;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushnil(L);
    while (text.empty() && lua_next(L, function + 1)) {
        if (lua_istable(L, -1) && lua_type(L, -2) == LUA_TSTRING) {
            lua_pushnil(L);
            while (text.empty() && lua_next(L, function + 3)) {
                if (lua_rawequal(L, -1, function) && lua_type(L, -2) == LUA_TSTRING) {
                    const std::string library = lua_tostring(L, function + 2);
                    text = (library == "_G" ? "" : library + ".") + lua_tostring(L, -2);
                }
                lua_pop(L, 1);
            }
        }
        lua_settop(L, function + 2);
    }
    lua_settop(L, function);
    return text;
}

}  // namespace

namespace {

// The name of the tensor method on top of the stack; empty if it is none.
std::string method_name(lua_State* L) {
    const int function = lua_gettop(L);
    std::string text;
    lua_rawgeti(L, LUA_REGISTRYINDEX, State::of(L).tensor_metatable);
    lua_getfield(L, -1, "__index");
    if (lua_isfunction(L, -1) && lua_getupvalue(L, -1, 1) && lua_istable(L, -1)) {
        const int methods = lua_gettop(L);
        lua_pushnil(L);
        while (text.empty() && lua_next(L, methods)) {
            if (lua_rawequal(L, -1, function) && lua_type(L, -2) == LUA_TSTRING)
                text = std::string("tensor:") + lua_tostring(L, -2);
            lua_pop(L, 1);
        }
    }
    lua_settop(L, function);
    return text;
}

}  // namespace

// A function in words known to the user: its place in the libraries or globals, its name in the source, or the line of
// its definition.
std::string LuaHost::describe(const Value& v) {
    luaL_checkstack(L, 10, "description");
    push(L, v);
    if (!lua_isfunction(L, -1)) {
        lua_pop(L, 1);
        return type_text(v);
    }
    std::string name = library_name(L), place;
    // A function that stands before another one is described by that one.
    if (name.empty() && lua_iscfunction(L, -1) && lua_getupvalue(L, -1, 1)) {
        if (lua_isfunction(L, -1)) {
            lua_remove(L, -2);
            name = library_name(L);
        } else {
            lua_pop(L, 1);
        }
    }
    if (name.empty()) name = method_name(L);
    if (!lua_iscfunction(L, -1)) {
        if (name.empty())
            if (const lua::Function* f = State::of(L).loader().source_of(L, -1).function) name = f->name;
        lua_Debug info;
        lua_pushvalue(L, -1);
        lua_getinfo(L, ">S", &info);
        place = *info.what == 'm' ? std::string(info.short_src) : str(info.short_src, ":", info.linedefined);
    }
    lua_pop(L, 1);
    if (place.empty()) return name.empty() ? "a function" : name;
    return name.empty() ? str("the function at ", place) : str(name, " (", place, ")");
}

namespace {

struct Binding {
    const Op* op;
    vm::Host::Bound bound;
    std::exception_ptr error;
};

// Binds the values on the stack, which starts at 1 in a call of its own.
int bind_here(lua_State* L) {
    auto& binding = *static_cast<Binding*>(lua_touserdata(L, lua_upvalueindex(1)));
    const int given = lua_gettop(L);
    try {
        binding.bound.args = bind_arguments(L, *binding.op, &binding.bound.paths);
    } catch (const std::exception&) {
        binding.error = std::current_exception();
    }
    // The handles of the arguments were made for this call. Values that an error left above them were read from tables
    // and belong to the program.
    for (int i = given; i > 0; --i)
        if (tensor_at(L, i)) set_tensor(L, i, Tensor());
    return 0;
}

}  // namespace

vm::Host::Bound LuaHost::bind(const Op& op, std::span<const Value> args) {
    luaL_checkstack(L, static_cast<int>(args.size()) + 8, "too many arguments");
    Binding binding{&op, {}, nullptr};
    lua_pushlightuserdata(L, &binding);
    lua_pushcclosure(L, bind_here, 1);
    for (const Value& v : args) push_briefly(v);
    lua_call(L, static_cast<int>(args.size()), 0);
    if (binding.error) std::rethrow_exception(binding.error);
    return std::move(binding.bound);
}

void LuaHost::for_each_table(const Value& table, const std::function<void(const Value&)>& f) {
    std::unordered_set<const void*> seen;
    std::vector<Value> waiting{table};
    while (!waiting.empty()) {
        Value t = std::move(waiting.back());
        waiting.pop_back();
        if (!seen.insert(vm::identity_of(t)).second) continue;
        f(t);
        luaL_checkstack(L, 6, "tables");
        const int base = lua_gettop(L);
        push(L, t);
        lua_pushnil(L);
        while (lua_next(L, base + 1)) {
            if (lua_istable(L, -1)) waiting.push_back(to_value(L, -1));
            lua_pop(L, 1);
        }
        lua_settop(L, base);
    }
}

bool LuaHost::holds_floats(const Value& table) {
    bool found = false;
    for_each_table(table, [&](const Value& t) {
        const int base = lua_gettop(L);
        push(L, t);
        lua_pushnil(L);
        while (!found && lua_next(L, base + 1)) {
            const Tensor* tensor = tensor_at(L, -1);
            found |= (lua_type(L, -1) == LUA_TNUMBER && !lua_isinteger(L, -1)) || (tensor && is_float(tensor->dtype()));
            lua_pop(L, 1);
        }
        lua_settop(L, base);
    });
    return found;
}

namespace {

int run_body(lua_State* L) {
    const auto& body = *static_cast<const std::function<void()>*>(lua_touserdata(L, 1));
    lua_settop(L, 0);
    body();
    return 0;
}

}  // namespace

bool LuaHost::is_protection(lua_CFunction f) { return f == protect<run_body>; }

vm::Host::Protected LuaHost::call_protected(const std::function<void()>& body) {
    luaL_checkstack(L, 6, "pcall");
    const int base = lua_gettop(L);
    ProgramEvents& events = State::of(main_).events();
    const int handler = events.push_error_handler(L) ? base + 1 : 0;
    lua_pushcfunction(L, protect<run_body>);
    lua_pushlightuserdata(L, const_cast<std::function<void()>*>(&body));
    Protected outcome;
    if (lua_pcall(L, 1, 0, handler) != LUA_OK) {
        outcome = {false, to_value(L, -1)};
        events.forget_error();
    }
    lua_settop(L, base);
    return outcome;
}

void LuaHost::raise(const Value& error) {
    luaL_checkstack(L, 2, "error");
    push(L, error);
    lua_error(L);
    std::abort();  // not reached; lua_error does not declare that it never returns
}

void LuaHost::poll() {
    safe_point();
    State::of(main_).events().on_poll(L);
}

void LuaHost::at_line() { State::of(main_).events().on_machine_line(L); }

void LuaHost::failed(const Error& e) { State::of(main_).events().on_failure(L, e); }

Index LuaHost::index_of(const Value& key) {
    luaL_checkstack(L, 6, "index");
    const int base = lua_gettop(L);
    push(L, key);
    Index index = index_at(L, base + 1);
    lua_settop(L, base);
    return index;
}

vm::Host::Part LuaHost::part_of(const Value& tensor, const Value& key) {
    if (key.kind() == Value::Kind::string && !is_slice_text(key.string())) return parts_.property(tensor, key.string());
    return parts_.indexed(tensor, index_of(key), nullptr);
}

bool LuaHost::is_part(const Value& text) { return is_slice_text(text.string()); }

vm::Host::Part LuaHost::put_part(const Value& tensor, const Value& key, const Value& value) {
    if (!value.is_number() && !value.is_tensor())
        throw argument_error("index", str("a number or a tensor is expected, got ", type_text(value)));
    return parts_.indexed(tensor, index_of(key), &value);
}

}  // namespace lunaria
