#include "interpreter/host/lua_outside.h"

#include <bit>

#include "core/ir/text.h"
#include "interpreter/host/natives.h"
#include "interpreter/state.h"
#include "interpreter/values/callables.h"
#include "interpreter/values/lua_reference.h"
#include "interpreter/values/values.h"

namespace lunaria {

using trace::Answer;
using trace::Guards;
using trace::Question;
using trace::Step;

LuaOutside::LuaOutside(LuaHost& host, Places places, Kept& kept)
    : Outside(host, places.count), host_(host), places_(places), kept_(kept), at_(host, host.lua(), nullptr, &span) {}

Value LuaOutside::function() {
    lua_State* L = host_.lua();
    lua_getiuservalue(L, 1, jit::kCompiledTarget);
    Value f = host_.to_value(L, -1);
    lua_pop(L, 1);
    return f;
}

// The protected body runs in another C function, which takes the arguments from a table.
vm::Host::Protected LuaOutside::protect(const std::function<void()>& body) {
    lua_State* L = host_.lua();
    lua_createtable(L, places_.count, 0);
    for (int i = 0; i < places_.count; ++i) {
        lua_pushvalue(L, places_.first + i);
        lua_rawseti(L, -2, i + 1);
    }
    struct Listed {
        int& reference;
        lua_State* L;
        ~Listed() { luaL_unref(L, LUA_REGISTRYINDEX, std::exchange(reference, LUA_NOREF)); }
    } const listed{listed_, L};
    listed_ = luaL_ref(L, LUA_REGISTRYINDEX);
    return host_.call_protected(body);
}

// Pushes the answer, above the queried objects.
void LuaOutside::push(lua_State* L, const Question& q) {
    if (q.kind == Step::Kind::count) return lua_pushinteger(L, count);
    if (q.kind == Step::Kind::argument) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, listed_);
        lua_rawgeti(L, -1, q.position + 1);
        return;
    }
    if (q.object_at > 0)
        lua_rawgeti(L, places_.kept, q.object_at);
    else
        host_.push(L, *q.object);
    switch (q.kind) {
        case Step::Kind::metatable:
            if (!lua_getmetatable(L, -1)) lua_pushnil(L);
            return;
        case Step::Kind::upvalue:
            if (!lua_getupvalue(L, -1, q.position)) lua_pushnil(L);
            return;
        case Step::Kind::length:
            return lua_pushinteger(L, static_cast<lua_Integer>(lua_rawlen(L, -1)));
        default:
            break;
    }
    if (q.key_at > 0)
        lua_rawgeti(L, places_.kept, q.key_at);
    else
        host_.push(L, *q.key);
    if (q.kind == Step::Kind::read)
        lua_rawget(L, -2);
    else if (lua_next(L, -2))
        lua_pop(L, 1);
    else
        lua_pushnil(L);
}

Answer LuaOutside::ask(const Question& question) {
    lua_State* L = host_.lua();
    const bool recording = listed_ != LUA_NOREF;
    if (question.kind == Step::Kind::argument && !recording)
        return answer_at(L, places_.first + question.position, question);
    if (recording) luaL_checkstack(L, 8, "graph mode");
    const int top = lua_gettop(L);
    push(L, question);
    Answer answer = answer_at(L, -1, question);
    lua_settop(L, top);
    return answer;
}

Answer LuaOutside::answer_at(lua_State* L, int index, const Question& question) {
    Answer answer;
    switch (lua_type(L, index)) {
        case LUA_TNIL:
            break;
        case LUA_TBOOLEAN:
            answer.kind = Answer::Kind::boolean;
            answer.boolean = lua_toboolean(L, index) != 0;
            break;
        case LUA_TNUMBER:
            if (lua_isinteger(L, index)) {
                answer.kind = Answer::Kind::integer;
                answer.integer = lua_tointeger(L, index);
            } else {
                answer.kind = Answer::Kind::number;
                answer.number = lua_tonumber(L, index);
            }
            break;
        case LUA_TSTRING: {
            answer.kind = Answer::Kind::text;
            answer.identity = lua_topointer(L, index);
            size_t size = 0;
            const char* text = lua_tolstring(L, index, &size);
            answer.text = {text, size};
            break;
        }
        case LUA_TTABLE:
            answer.kind = Answer::Kind::table;
            answer.identity = lua_topointer(L, index);
            break;
        case LUA_TUSERDATA: {
            void* const block = lua_touserdata(L, index);
            answer.kind = Answer::Kind::other;
            answer.identity = block;
            TensorBody** place = State::of(L).memory().handle(block);
            if (!place || !*place) break;
            answer.kind = Answer::Kind::tensor;
            // A Tensor is its body's pointer.
            answer.tensor = reinterpret_cast<const Tensor*>(place);
            if (LuaMemory::note(place) != *place && (question.handle || host_.handles().keeps(L)))
                host_.handles().note_tensor(L, lua_absindex(L, index), place);
            if (question.handle) answer.handle = host_.reference(L, index);
            break;
        }
        case LUA_TLIGHTUSERDATA:  // it may have any address
            answer.kind = Answer::Kind::other;
            break;
        default:
            answer.kind = Answer::Kind::other;
            answer.identity = lua_topointer(L, index);
    }
    if (question.value) answer.value = host_.to_value(L, index);
    // What the machine knows by an object of its own does not keep Lua's object for it.
    const bool own = answer.value.kind() == Value::Kind::object && !vm::object_as<LuaReference>(answer.value);
    if (question.handle && own) answer.handle = host_.reference(L, index);
    return answer;
}

namespace {

bool fits(const Guards::Check& check, lua_State* L, int type, int index) {
    using Kind = Guards::Check::Kind;
    switch (check.kind) {
        case Kind::object:  // a light userdata may have any address
            return type > LUA_TSTRING && lua_topointer(L, index) == check.pointer;
        case Kind::nil:
            return type == LUA_TNIL;
        case Kind::boolean:
            return type == LUA_TBOOLEAN && lua_toboolean(L, index) == check.bits;
        case Kind::integer:
            return type == LUA_TNUMBER && lua_isinteger(L, index) && lua_tointeger(L, index) == check.bits;
        case Kind::number:
            return type == LUA_TNUMBER && !lua_isinteger(L, index) &&
                   std::bit_cast<int64_t>(static_cast<double>(lua_tonumber(L, index))) == check.bits;
        case Kind::text: {
            if (type != LUA_TSTRING) return false;
            // Lua has a short text only once; a long one may exist twice.
            if (lua_topointer(L, index) == check.pointer) return true;
            size_t size = 0;
            const char* text = lua_tolstring(L, index, &size);
            return check.text->string() == std::string_view(text, size);
        }
    }
    return false;
}

constexpr int kPile = Kept::kSpace - 8;  // answers that are left on the stack before they are popped together

}  // namespace

bool LuaOutside::hold(const Guards& guards) {
    using Check = Guards::Check;
    lua_State* const pool = kept_.pool();
    const int top = lua_gettop(pool);
    int object = 0, pile = 0;
    bool fine = true;
    for (const Check& check : guards.checks()) {
        if (check.what == Check::What::object) {
            object = check.at;
            continue;
        }
        if (pile >= kPile) {
            lua_settop(pool, top);
            pile = 0;
        }
        int type = LUA_TNIL;
        switch (check.what) {
            case Check::What::read:
                lua_pushvalue(pool, check.at);
                type = lua_rawget(pool, object);
                ++pile;
                break;
            case Check::What::item:
                type = lua_rawgeti(pool, object, check.key);
                ++pile;
                break;
            case Check::What::metatable:
                if (lua_getmetatable(pool, object)) {
                    type = LUA_TTABLE;
                    ++pile;
                }
                break;
            case Check::What::upvalue:
                if (lua_getupvalue(pool, object, check.at)) {
                    type = lua_type(pool, -1);
                    ++pile;
                }
                break;
            case Check::What::length:
                fine = static_cast<int64_t>(lua_rawlen(pool, object)) == check.bits;
                type = LUA_TNONE;
                break;
            case Check::What::next:
                // The previous key, with its value, is above the pool.
                lua_settop(pool, check.first ? top : top + 1);
                if (check.first) lua_pushnil(pool);
                pile = 0;
                if (lua_next(pool, object))
                    fine = fits(check, pool, lua_type(pool, top + 1), top + 1);
                else
                    fine = check.kind == Check::Kind::nil;
                type = LUA_TNONE;
                break;
            default:
                type = lua_type(pool, -1);
        }
        if (type != LUA_TNONE) fine = fits(check, pool, type, -1);
        if (!fine) break;
    }
    lua_settop(pool, top);
    return fine;
}

bool LuaOutside::call(const Value& f, std::span<const Value> args, const Step& step, vm::Values& results,
                      Value& error) {
    lua_State* L = host_.lua();
    luaL_checkstack(L, static_cast<int>(args.size()) + 8, "too many arguments");
    const int base = lua_gettop(L);
    host_.push(L, f);
    for (const Value& v : args) host_.push(L, v);
    if (lua_pcall(L, static_cast<int>(args.size()), LUA_MULTRET, 0) != LUA_OK) {
        host_.complete_message(f, step.direct ? std::string() : ir::place_text(step.span()), step.method);
        error = host_.to_value(L, -1);
        lua_settop(L, base);
        return false;
    }
    for (int i = base + 1, n = lua_gettop(L); i <= n; ++i) results.push_back(host_.to_value(L, i));
    lua_settop(L, base);
    return true;
}

Value LuaOutside::make_table(std::span<const Value> recipe) {
    lua_State* L = host_.lua();
    luaL_checkstack(L, 8, "table");
    lua_createtable(L, static_cast<int>(recipe[0].integer()), static_cast<int>(recipe[1].integer()));
    for (size_t i = 3; i + 1 < recipe.size(); i += 2) {
        host_.push(L, recipe[i]);
        host_.push(L, recipe[i + 1]);
        lua_rawset(L, -3);
    }
    if (!recipe[2].is_nil()) {
        host_.push(L, recipe[2]);
        lua_setmetatable(L, -2);
    }
    Value v = host_.to_value(L, -1);
    lua_pop(L, 1);
    return v;
}

void LuaOutside::pour(const Value& from, const Value& to) {
    lua_State* L = host_.lua();
    luaL_checkstack(L, 8, "table");
    host_.push(L, from);
    host_.push(L, to);
    auto clear = [&](int table) {
        lua_pushnil(L);
        while (lua_next(L, table)) {
            lua_pop(L, 1);
            lua_pushvalue(L, -1);
            lua_pushnil(L);
            lua_rawset(L, table);
        }
    };
    const int target = lua_gettop(L), source = target - 1;
    clear(target);
    lua_pushnil(L);
    while (lua_next(L, source)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, target);
    }
    if (!lua_getmetatable(L, source)) lua_pushnil(L);
    lua_setmetatable(L, target);
    clear(source);
    lua_pushnil(L);
    lua_setmetatable(L, source);
    lua_settop(L, source - 1);
}

void LuaOutside::set_upvalue(const Value& function, int position, const Value& v) {
    lua_State* L = host_.lua();
    luaL_checkstack(L, 4, "upvalue");
    host_.push(L, function);
    host_.push(L, v);
    lua_setupvalue(L, -2, position);
    lua_pop(L, 1);
}

Value LuaOutside::handle_of(const Value& tensor) {
    lua_State* L = host_.lua();
    luaL_checkstack(L, 2, "tensor");
    host_.push(L, tensor);
    host_.handles().note_tensor(L, lua_absindex(L, -1), tensor_place(L, -1));
    Value handle = host_.reference(L, -1);
    lua_pop(L, 1);
    return handle;
}

Value LuaOutside::lasting(const Value& v) {
    const auto* r = vm::object_as<LuaReference>(v);
    if (!r || !r->is_kept()) return v;
    lua_State* L = host_.lua();
    luaL_checkstack(L, 4, "reference");
    r->push(L);
    Value own = host_.reference(L, -1);
    lua_pop(L, 1);
    return own;
}

trace::Outside::Type LuaOutside::type_of(const Value& v) {
    const auto* r = vm::object_as<LuaReference>(v);
    if (!r) return Type::none;
    return r->type == LUA_TTABLE ? Type::table : r->type == LUA_TFUNCTION ? Type::function : Type::other;
}

Native LuaOutside::native(const Value& f) {
    lua_State* L = host_.lua();
    luaL_checkstack(L, 4, "call");
    host_.push(L, f);
    const Native which = lua_isfunction(L, -1) ? natives_of(L).find(L, -1) : Native::error;
    lua_pop(L, 1);
    return which;
}

Value LuaOutside::any_function() {
    lua_State* L = host_.lua();
    luaL_checkstack(L, 1, "metatable");
    lua_pushcfunction(L, lua_error);
    Value function = host_.reference(L, -1);
    lua_pop(L, 1);
    return function;
}

const void* LuaOutside::variable(const Value& function, int position) {
    lua_State* L = host_.lua();
    luaL_checkstack(L, 4, "call");
    host_.push(L, function);
    const void* identity = lua_upvalueid(L, -1, position);
    lua_pop(L, 1);
    return identity;
}

trace::CapturedNumbers& LuaOutside::captured_numbers() { return captured_numbers_of(host_.lua()); }

void LuaOutside::run(vm::Machine& machine, const std::function<void()>& body) {
    LuaHost::Running running(host_, machine);
    body();
}

void LuaOutside::make_room() {
    lua_State* L = host_.lua();
    constexpr int kMostKilobytes = 64 << 10;  // of Lua's own heap: a larger one takes long to traverse
    if (lua_gc(L, LUA_GCCOUNT) <= kMostKilobytes) lua_gc(L, LUA_GCCOLLECT);
}

}  // namespace lunaria
