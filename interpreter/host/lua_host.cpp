#include "interpreter/host/lua_host.h"

#include <algorithm>
#include <array>
#include <new>

#include "core/base/interrupt.h"
#include "core/ir/printer.h"
#include "interpreter/events.h"
#include "interpreter/host/coroutines.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/callables.h"
#include "interpreter/values/lua_reference.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/values.h"
#include "jit/frontend/ast.h"
#include "jit/lower/lower.h"
#include "jit/number.h"
#include "jit/vm/cycles.h"
#include "jit/vm/watcher.h"

namespace lunaria {

using vm::Callee;
using vm::Closure;
using vm::Field;

namespace {

// A function of plain numbers as a Lua function: upvalue 1 is the primitive.
int call_number(lua_State* L) {
    const Op& op = *static_cast<const Op*>(lua_touserdata(L, lua_upvalueindex(1)));
    std::vector<Value> args;
    for (size_t i = 1; i <= op.signature.params.size(); ++i)
        args.push_back(LuaHost::of(L).to_value(L, static_cast<int>(i)));
    LuaHost::of(L).push(L, lua::run_number(op, args));
    return 1;
}

// A closure of the machine as a Lua function: upvalue 1 holds it.
int call_closure(lua_State* L) {
    LuaHost& host = LuaHost::of(L);
    const Value f = *host.boxed(L, lua_upvalueindex(1));
    vm::Values args;
    for (int i = 1, n = lua_gettop(L); i <= n; ++i) args.push_back(host.to_value(L, i));
    vm::Values results = host.run(L, f, std::move(args));
    luaL_checkstack(L, static_cast<int>(results.size()) + 8, "too many results");
    for (const Value& v : results) host.push(L, v);
    return static_cast<int>(results.size());
}

class NumberFunction final : public Object {
  public:
    explicit NumberFunction(const Op& op) : op(op) {}
    const Op& op;
};

class LuaOperator final : public Object {
  public:
    explicit LuaOperator(const Op& op) : op(op) {}
    const Op& op;
};

int host_key;

// How many nodes of the graphs of functions that no longer exist are kept; their derivatives have about ten times as
// many.
constexpr size_t kNodesKept = 20000;
constexpr size_t kNodesAtLeast = 20;

size_t node_count(const ir::Graph& graph) {
    size_t count = graph.nodes().size();
    for (const auto& inner : graph.inner()) count += node_count(*inner);
    return count;
}

}  // namespace

LuaHost::LuaHost(lua_State* main)
    : main_(main), L(main), machine_(*this), boxes_(main), handles_(*this, main), stand_ins_(*this, main) {
    info_cache_ = weak_table(L, "k");
    threads_ = weak_table(L, "k");
}

LuaHost::~LuaHost() { vm::collect_all_cycles(); }

LuaHost& LuaHost::of(lua_State* L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key) == LUA_TNIL) {
        // The machine keeps its objects by thread, and a worker may change its thread.
        if (State::of(L).is_worker())
            throw state_error("workers", "a function in a worker cannot use the virtual machine: ms.grad and the like")
                .hint("leave python_multiprocessing out, or differentiate behind the pipeline");
        // Lua does not finalize it, since finalizers of programs may still need it.
        auto* place = static_cast<LuaHost*>(lua_newuserdatauv(L, sizeof(LuaHost), 0));
        lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
        lua_State* main = lua_tothread(L, -1);
        lua_pop(L, 1);
        new (place) LuaHost(main);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &host_key);
        lua_pop(L, 1);
        return *place;
    }
    auto* host = static_cast<LuaHost*>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return *host;
}

void LuaHost::end(lua_State* L) {
    if (LuaHost* host = existing(L)) host->~LuaHost();
}

LuaHost* LuaHost::existing(lua_State* L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key);
    auto* host = static_cast<LuaHost*>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return host;
}

vm::Values LuaHost::run(lua_State* state, const Value& f, vm::Values args) {
    State::of(state).pace(state);
    struct Switch {
        LuaHost& host;
        lua_State* before;
        ~Switch() {
            host.L = before;
            host.entries_.pop_back();
        }
    } restore{*this, L};
    // A finalizer that runs in the midst of a watched program is not watched.
    const vm::Watch unwatched(nullptr);
    const At at(*this, state, &machine_, nullptr);
    entries_.push_back({state, innermost_call(), machine_.frame_count()});
    L = state;
    boxes_.end_collection();
    vm::Values backs;
    vm::Values results = machine_.run(f, {}, std::move(args), backs);
    if (entries_.size() == 1) {
        handles_.sweep_new(state);
        if (boxes_.many()) collect_cycles(state);
    }
    return results;
}

void LuaReference::end_collection(lua_State* L) { LuaHost::of(L).boxes_.end_collection(); }

Value LuaHost::reference(lua_State* state, int index) { return vm::make_object<LuaReference>(main_, state, index); }

Value LuaHost::to_value(lua_State* state, int index) {
    switch (lua_type(state, index)) {
        case LUA_TNONE:
        case LUA_TNIL:
            return {};
        case LUA_TBOOLEAN:
            return Value(lua_toboolean(state, index) != 0);
        case LUA_TNUMBER:
            return lua_isinteger(state, index) ? Value(static_cast<int64_t>(lua_tointeger(state, index)))
                                               : Value(static_cast<double>(lua_tonumber(state, index)));
        case LUA_TSTRING: {
            size_t size = 0;
            const char* text = lua_tolstring(state, index, &size);
            return Value(std::string_view(text, size));
        }
        case LUA_TUSERDATA: {
            if (TensorBody** place = tensor_place(state, index)) {
                if (LuaMemory::note(place) != *place) handles_.note_tensor(state, lua_absindex(state, index), place);
                return Value(*reinterpret_cast<const Tensor*>(place));
            }
            if (const Value* v = boxed(state, index)) return *v;
            return reference(state, index);
        }
        case LUA_TFUNCTION: {
            const lua_CFunction c = lua_tocfunction(state, index);
            if (!c) return reference(state, index);
            if (const Op* op = operator_at(state, index)) {
                Value& v = operators_[op];
                if (v.is_nil()) v = vm::make_object<LuaOperator>(*op);
                return v;
            }
            if (Value v = closure_at(state, index)) return handles_.noted(state, index, std::move(v));
            if (c == protect<call_number>) {
                lua_getupvalue(state, index, 1);
                const Op* op = static_cast<const Op*>(lua_touserdata(state, -1));
                lua_pop(state, 1);
                Value& v = number_functions_[op];
                if (v.is_nil()) v = vm::make_object<NumberFunction>(*op);
                return v;
            }
            return reference(state, index);
        }
        case LUA_TTHREAD:
            if (Value v = coroutine_at(state, index)) return handles_.noted(state, index, std::move(v));
            return reference(state, index);
        default:
            return reference(state, index);
    }
}

bool LuaHost::collect_cycles(lua_State* state) {
    vm::collect_all_cycles();
    handles_.sweep_all(state);
    return boxes_.collect_cycles(state, [&](const Object& o) { handles_.release(state, &o); });
}

Value LuaHost::coroutine_at(lua_State* state, int index) {
    if (lua_type(state, index) != LUA_TTHREAD) return {};
    lua_pushvalue(state, index);
    lua_rawgeti(state, LUA_REGISTRYINDEX, threads_);
    lua_insert(state, -2);
    lua_rawget(state, -2);
    const Value* found = boxed(state, -1);
    lua_pop(state, 2);
    return found ? *found : Value();
}

// To Lua a coroutine of the machine is a thread that never runs.
void LuaHost::push_thread(lua_State* state, const Value& v) {
    if (handles_.push(state, v.object())) return;
    luaL_checkstack(state, 8, "coroutine");
    lua_newthread(state);
    lua_rawgeti(state, LUA_REGISTRYINDEX, threads_);
    lua_pushvalue(state, -2);
    boxes_.push(state, v);
    lua_rawset(state, -3);
    lua_pop(state, 1);
    handles_.note(state, lua_gettop(state), v.object());
}

void LuaHost::push_number_function(lua_State* L, const Op& primitive) {
    lua_pushlightuserdata(L, const_cast<Op*>(&primitive));
    lua_pushcclosure(L, protect<call_number>, 1);
}

void LuaHost::push(lua_State* state, const Value& v) {
    if (v.is_list()) {
        lua_createtable(state, static_cast<int>(v.items().size()), 0);
        for (size_t i = 0; i < v.items().size(); ++i) {
            push(state, v.items()[i]);
            lua_rawseti(state, -2, static_cast<lua_Integer>(i) + 1);
        }
        return;
    }
    if (v.is_tensor()) return handles_.push_tensor(state, v.tensor());
    if (v.kind() != Value::Kind::object) {
        Value copy = v;
        return lunaria::push(state, std::move(copy));
    }
    if (auto* r = vm::object_as<LuaReference>(v)) return r->push(state);
    if (auto* o = vm::object_as<LuaOperator>(v)) return push_operator(state, o->op);
    if (const Op* op = vm::operator_of(v)) return push_operator(state, *op);
    if (auto* n = vm::object_as<NumberFunction>(v)) return push_number_function(state, n->op);
    if (vm::object_as<vm::Coroutine>(v)) return push_thread(state, v);
    if (vm::object_as<Closure>(v)) {
        if (handles_.push(state, v.object())) return;
        boxes_.push(state, v);
        lua_pushcclosure(state, protect<call_closure>, 1);
        handles_.note(state, lua_gettop(state), v.object());
        return;
    }
    boxes_.push(state, v);
}

Value LuaHost::closure_at(lua_State* state, int index) {
    if (lua_tocfunction(state, index) != protect<call_closure>) return {};
    lua_getupvalue(state, index, 1);
    Value v = *boxed(state, -1);
    lua_pop(state, 1);
    return v;
}

const ir::Graph* LuaHost::text_of(lua_State* state, int index) {
    LuaHost* host = existing(state);
    const Value f = host ? host->closure_at(state, index) : Value();
    return f.is_nil() ? nullptr : &vm::object_as<Closure>(f)->function->graph;
}

lua_CFunction LuaHost::c_function(const Value& f) {
    auto* r = vm::object_as<LuaReference>(f);
    if (!r || r->type != LUA_TFUNCTION) return nullptr;
    luaL_checkstack(L, 2, "function");
    r->push(L);
    lua_CFunction found = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return found;
}

void LuaHost::set_intrinsic(lua_State* state, int index, Intrinsic function, std::string_view kinds) {
    const lua_CFunction f = lua_tocfunction(state, index);
    intrinsics_[f] = std::move(function);
    if (!kinds.empty()) arguments_.note(state, f, kinds);
}

void LuaHost::forget_functions() {
    new_nodes_ = 0;
    std::vector<std::pair<uint64_t, const lua::Function*>> unused;
    size_t unused_nodes = 0, used_nodes = 0;
    auto look = [&] {
        unused.clear();
        unused_nodes = used_nodes = 0;
        for (const auto& [function, info] : infos_) {
            if (info.use_count() > 1) {
                used_nodes += info->nodes;
                continue;
            }
            unused.emplace_back(info->used, function);
            unused_nodes += info->nodes;
        }
    };
    // Lua does not see the memory behind its functions; unless its collector is told, they would pile up.
    const bool collects = lua_gc(L, LUA_GCISRUNNING) != 0;
    if (collects) lua_gc(L, LUA_GCSTEP, 0);
    look();
    if (collects && used_nodes > 2 * settled_nodes_ + kNodesKept) {
        lua_gc(L, LUA_GCCOLLECT);
        look();
        settled_nodes_ = used_nodes;
    }
    std::sort(unused.begin(), unused.end());
    for (const auto& [used, function] : unused) {
        if (unused_nodes <= kNodesKept) return;
        const auto found = infos_.find(function);
        unused_nodes -= found->second->nodes;
        infos_.erase(found);
    }
}

// The graph of the Lua function at `index` of L; null if its source is unknown or cannot be expressed.
std::shared_ptr<LuaHost::FunctionInfo> LuaHost::info_of(int index) {
    index = lua_absindex(L, index);
    lua_rawgeti(L, LUA_REGISTRYINDEX, info_cache_);
    lua_pushvalue(L, index);
    lua_rawget(L, -2);
    // An info that is collected together with its function is empty, but a later finalizer may still find it.
    if (const auto* known = static_cast<std::shared_ptr<FunctionInfo>*>(lua_touserdata(L, -1)); known && *known) {
        std::shared_ptr<FunctionInfo> info = *known;
        info->used = infos_made_;
        lua_pop(L, 2);
        return info;
    }
    lua_pop(L, 1);
    FunctionSource source = State::of(L).loader().source_of(L, index);
    std::shared_ptr<FunctionInfo> info;
    if (source.function) {
        if (new_nodes_ > kNodesKept / 2) forget_functions();
        auto& kept = infos_[source.function];
        if (!kept) {
            kept = std::make_shared<FunctionInfo>();
            ++infos_made_;
            kept->chunk = source.chunk;
            kept->function = source.function;
            try {
                kept->graph = lower::lower(*source.chunk, *source.function, false, &kept->operations);
            } catch (const Error& e) {
                kept->problem = e.what();
            }
            kept->nodes = kNodesAtLeast + (kept->graph ? node_count(*kept->graph) : 0);
            new_nodes_ += kept->nodes;
            for (const lua::Upvalue& u : source.function->upvalues) {
                kept->cells.push_back(u.local->captured && u.local->assigned_after_capture);
                kept->positions.push_back(static_cast<int>(kept->positions.size()) + 1);
            }
        }
        kept->used = infos_made_;
        info = kept;
    } else {
        info = std::make_shared<FunctionInfo>();
        info->problem = source.problem;
    }
    lua_pushvalue(L, index);
    new (lua_newuserdatauv(L, sizeof(info), 0)) std::shared_ptr<FunctionInfo>(info);
    if (luaL_newmetatable(L, "lunaria.function")) {
        lua_pushcfunction(L, [](lua_State* state) {
            using Held = std::shared_ptr<FunctionInfo>;
            if (auto* held = static_cast<Held*>(luaL_testudata(state, 1, "lunaria.function"))) held->reset();
            return 0;
        });
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    return info;
}

// The graph that the machine runs: with stop points while a debugger needs them.
const std::shared_ptr<ir::Graph>& LuaHost::graph_of(FunctionInfo& info) {
    if (!info.graph || !State::of(main_).events().wants_stop_points()) return info.graph;
    if (info.chunk->name().starts_with("lunaria:")) return info.graph;
    if (!info.stopping) info.stopping = lower::lower(*info.chunk, *info.function, true, &info.operations);
    return info.stopping;
}

std::string LuaHost::why_opaque(const Value& f) {
    luaL_checkstack(L, 10, "function");
    push(L, f);
    std::string problem = "it is not written in Lua";
    if (lua_isfunction(L, -1) && !lua_iscfunction(L, -1)) problem = info_of(-1)->problem;
    if (is_coroutine_resume(lua_tocfunction(L, -1)) || resumed_by(f, {}))
        problem = "the coroutine was created outside of what is differentiated; create it within";
    lua_pop(L, 1);
    return problem;
}

std::string LuaHost::graph_text(lua_State* state, int index, int order) {
    Value f = to_value(state, index);
    if (auto* closure = vm::object_as<Closure>(f)) return ir::print(vm::derivative_of(*closure->function, order).graph);
    L = state;
    Callee callee = resolve(f);
    if (!callee.function) throw argument_error("ir", str("there is no graph of ", describe(f), ": ", why_opaque(f)));
    return ir::print(vm::derivative_of(*callee.function, order).graph);
}

void LuaHost::capture(const Value& f, int index, const FunctionInfo& info, vm::Values& captures) {
    index = lua_absindex(L, index);
    for (size_t i = 0; i < info.cells.size(); ++i) {
        if (info.cells[i]) {
            captures.push_back(vm::make_object<UpvalueCell>(*this, f, L, index, info.positions[i]));
            continue;
        }
        if (!lua_getupvalue(L, index, info.positions[i])) lua_pushnil(L);
        captures.push_back(to_value(L, -1));
        lua_pop(L, 1);
    }
}

const Op* LuaHost::operator_in(const Value& f) {
    auto* o = vm::object_as<LuaOperator>(f);
    return o ? &o->op : nullptr;
}

Value LuaHost::jit_target(const Value& f) {
    auto* r = vm::object_as<LuaReference>(f);
    if (!r || r->type != LUA_TUSERDATA) return f;
    luaL_checkstack(L, 4, "call");
    r->push(L);
    Value target = f;
    if (luaL_testudata(L, -1, jit::kMetatable)) {
        lua_getiuservalue(L, -1, jit::kCompiledTarget);
        target = to_value(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return target;
}

Callee LuaHost::resolve(const Value& any) {
    const Value given = jit_target(any);
    Callee callee;
    if (auto* closure = vm::object_as<Closure>(given)) {
        callee.kind = Callee::Kind::closure;
        callee.function = closure->function;
        callee.intrinsic = true;
        callee.closure = given;
        callee.captures = closure->captures;
        return callee;
    }
    if (auto* o = vm::object_as<LuaOperator>(given)) {
        callee.kind = Callee::Kind::op;
        callee.op = &o->op;
        return callee;
    }
    if (const Op* op = vm::operator_of(given)) {
        callee.kind = Callee::Kind::op;
        callee.op = op;
        return callee;
    }
    callee.closure = given;
    if (auto* n = vm::object_as<NumberFunction>(given)) {
        vm::OperatorFunction f = vm::number_function(n->op);
        callee.kind = Callee::Kind::function;
        callee.intrinsic = true;
        callee.function = f.function;
        callee.owner = f.owner;
        return callee;
    }
    auto* r = vm::object_as<LuaReference>(given);
    if (!r) return callee;
    luaL_checkstack(L, 10, "call");
    r->push(L);
    const int top = lua_gettop(L);
    callee.kind = Callee::Kind::opaque;
    if (r->type == LUA_TFUNCTION) {
        const lua_CFunction c = lua_tocfunction(L, top);
        if (c) {
            if (auto found = intrinsics_.find(c); found != intrinsics_.end()) {
                callee.kind = Callee::Kind::function;
                callee.intrinsic = true;
                const auto* which = std::get_if<vm::Prelude>(&found->second);
                const auto& function = which ? vm::prelude(*which) : std::get<vm::OperatorFunction>(found->second);
                callee.function = function.function;
                callee.owner = function.owner;
            }
        }
        const bool replaced = stand_ins_.push_replacement(L, top);
        if (replaced && callee.intrinsic) {
            callee.otherwise = to_value(L, -1);
        } else if (replaced) {
            callee = resolve(to_value(L, -1));
        } else if (!c) {
            std::shared_ptr<FunctionInfo> info = info_of(top);
            if (const auto& graph = graph_of(*info)) {
                callee.kind = Callee::Kind::function;
                callee.function = &vm::function_of(*graph);
                callee.owner = graph;
                capture(given, top, *info, callee.captures);
            }
        }
        if (c) {
            callee.keeps_caller = true;
            callee.kinds = arguments_.of(L, c);
            if (!callee.kinds.empty()) callee.takes = LuaArguments::fit;
        }
    } else if (luaL_getmetafield(L, top, "__call") != LUA_TNIL) {
        Value method = to_value(L, -1);
        if (auto* closure = vm::object_as<Closure>(method)) {
            callee.kind = Callee::Kind::closure;
            callee.function = closure->function;
            callee.intrinsic = true;
            callee.closure = method;
            callee.captures = closure->captures;
        } else {
            callee = resolve(method);
            if (callee.closure.is_nil()) callee.closure = method;
        }
        callee.prefix.push_back(given);
    }
    lua_settop(L, top - 1);
    return callee;
}

}  // namespace lunaria
