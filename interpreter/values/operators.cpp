#include "interpreter/values/operators.h"

#include <algorithm>
#include <array>
#include <memory>

#include "core/base/spelling.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "jit/vm/binding.h"

namespace lunaria {

namespace {

// Arguments of the common call, all by position and already of the right kind. Tensors are borrowed from their handles
// on the stack, defaults from the signature: no reference is counted and nothing is destroyed.
class QuickArguments {
  public:
    static constexpr size_t kMost = 12;

    bool bind(lua_State* L, const Op& op, int given) {
        const auto& params = op.signature.params;
        const auto count = static_cast<size_t>(given);
        if (count > params.size() || params.size() > kMost) return false;
        LuaMemory& memory = State::of(L).memory();
        for (size_t i = 0; i < count; ++i)
            if (params[i].by_name_only || !bind_one(L, memory, static_cast<int>(i) + 1, params[i], at(i))) return false;
        for (size_t i = count; i < params.size(); ++i) {
            if (!params[i].has_default) return false;
            const Value& value = params[i].default_value;
            std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof(Value), at(i));
        }
        count_ = params.size();
        return true;
    }

    std::span<const Value> values() const {
        return {std::launder(reinterpret_cast<const Value*>(storage_.data())), count_};
    }

  private:
    std::byte* at(size_t i) { return storage_.data() + i * sizeof(Value); }

    static bool bind_one(lua_State* L, LuaMemory& memory, int index, const Param& param, std::byte* place) {
        const ArgType type = param.type;
        // Mostly it is a tensor, and only a null may be something else.
        if (void* userdata = lua_touserdata(L, index)) {
            if (!is_tensor_type(type) || type == ArgType::tensors) return false;
            TensorBody** handle = memory.handle(userdata);
            if (!handle || !*handle) return false;
            new (place) Value(Tensor::adopt(*handle));
            return true;
        }
        switch (lua_type(L, index)) {
            case LUA_TNUMBER:
                if (lua_isinteger(L, index)) {
                    if ((is_tensor_type(type) && type != ArgType::tensors) || type == ArgType::integer ||
                        type == ArgType::number || type == ArgType::scalar) {
                        new (place) Value(static_cast<int64_t>(lua_tointeger(L, index)));
                        return true;
                    }
                    return false;
                }
                if ((is_tensor_type(type) && type != ArgType::tensors) || type == ArgType::number ||
                    type == ArgType::scalar) {
                    new (place) Value(static_cast<double>(lua_tonumber(L, index)));
                    return true;
                }
                return false;
            case LUA_TBOOLEAN:
                if (type != ArgType::boolean && type != ArgType::scalar) return false;
                new (place) Value(lua_toboolean(L, index) != 0);
                return true;
            case LUA_TNIL:
                if (!param.optional) return false;
                new (place) Value();
                return true;
            default:
                return false;
        }
    }

    alignas(Value) std::array<std::byte, kMost * sizeof(Value)> storage_;
    size_t count_ = 0;
};

int push_results(lua_State* L, const Op& op, Value result) {
    if (result.is_tensor()) {
        push(L, take_tensor(std::move(result)));
        return 1;
    }
    const bool several = result.is_list() &&
                         (!op.signature.results.empty() || (!result.items().empty() && result.items()[0].is_tensor()));
    if (!several) {
        push(L, std::move(result));
        return 1;
    }
    const auto& items = result.items();
    luaL_checkstack(L, static_cast<int>(items.size()) + 4, "too many results");
    for (const Value& item : items) push(L, item);
    return static_cast<int>(items.size());
}

const Op& bound_operator(lua_State* L) { return *static_cast<const Op*>(lua_touserdata(L, lua_upvalueindex(1))); }

int call_bound(lua_State* L) { return call_operator(L, bound_operator(L)); }

int call_bound_unary(lua_State* L) {
    lua_settop(L, 1);
    return call_operator(L, bound_operator(L));
}

std::string names_of(const Op& op) {
    std::string list;
    for (const Param& p : op.signature.params) list += str(list.empty() ? "" : ", ", p.name);
    return list;
}

[[noreturn]] void unknown_name(const Op& op, std::string_view key) {
    std::vector<std::string_view> names;
    for (const Param& p : op.signature.params) {
        names.push_back(p.name);
        names.insert(names.end(), p.other_names.begin(), p.other_names.end());
    }
    const std::string near = nearest(key, names);
    throw argument_error(op.name(), str("there is no parameter '", key, "'; there are: ", names_of(op)))
        .hint(near.empty() ? str("the signature is ", op.signature.text) : near);
}

using Path = vm::Host::Bound::Path;

// The sources of the argument made from the value at the index, which is found by the path.
std::vector<Path> paths_of(lua_State* L, int index, const Op& op, const Param& param, const Value& arg, Path path) {
    if (lua_isnil(L, index)) return {};
    const bool as_it_is = lua_isnumber(L, index) || tensor_at(L, index);
    if (is_tensor_type(param.type) && param.type != ArgType::tensors && !as_it_is) return {};
    if (param.type != ArgType::tensors || !lua_istable(L, index)) return {std::move(path)};
    std::vector<Path> paths;
    for (const Value& item : arg.items()) {
        Path& at = paths.emplace_back(path);
        at.item = static_cast<int64_t>(paths.size());
        const int type = lua_rawgeti(L, index, at.item);
        const Tensor* tensor = tensor_at(L, -1);
        if (type == LUA_TNUMBER)
            at.number_as = Value(item.tensor().dtype());
        else if (!tensor || !tensor->same_body(item.tensor()))
            throw argument_error(op.name(), str(param.name, "[", at.item, "] is ", describe(L, lua_gettop(L)),
                                                ": no gradient flows through what is made a tensor on the way"))
                .hint("make a tensor of it first, with ops.stack or ms.tensor");
        lua_pop(L, 1);
    }
    return paths;
}

// Draws a seed from the ms.Generator on top of the stack, for one call of an operator that draws numbers, and replaces
// it by the seed. Gives the seed's parameter.
size_t push_drawn_seed(lua_State* L, const Op& op) {
    const int seed = op.draws() ? op.signature.find("seed") : -1;
    if (seed < 0) unknown_name(op, "generator");
    if (!lua_istable(L, -1) || lua_getfield(L, -1, "_draw") != LUA_TFUNCTION)
        throw argument_error(op.name(), str("generator must be a ms.Generator, got ", describe(L, lua_gettop(L))));
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    return static_cast<size_t>(seed);
}

// The arguments on the stack, for vm::Binding.
struct LuaArguments {
    using Item = int;  // an index of the stack
    lua_State* const L;
    const Op& op;

    size_t count() const { return static_cast<size_t>(lua_gettop(L)); }
    int at(size_t i) const { return static_cast<int>(i) + 1; }
    bool is_options(int index) const { return lunaria::is_options(L, index); }
    bool is_empty_table(int index) const { return lua_istable(L, index) && lua_rawlen(L, index) == 0; }
    std::optional<int64_t> size(int index) const {
        return lua_isinteger(L, index) ? std::optional<int64_t>(lua_tointeger(L, index)) : std::nullopt;
    }
    const Tensor* tensor(int index) const { return tensor_at(L, index); }
    Value converted(int index, const Param& param) const { return argument_at(L, index, op, param); }
    std::vector<Path> paths_of(int index, const Param& param, const Value& arg, Path path) const {
        return lunaria::paths_of(L, index, op, param, arg, std::move(path));
    }
    void for_each_option(int table, const auto& f) const {
        lua_pushnil(L);
        while (lua_next(L, table)) {
            if (lua_type(L, -2) != LUA_TSTRING)
                throw argument_error(op.name(), str("the table of names has ", describe(L, -2), " among its names"));
            const std::string_view key = lua_tostring(L, -2);
            const bool draws = key == "generator" && !lua_isnil(L, -1);
            f(draws ? std::string_view(op.signature.params[push_drawn_seed(L, op)].name) : key, key, lua_gettop(L));
            lua_pop(L, 1);
        }
    }
    [[noreturn]] void unknown_name(std::string_view key) const { lunaria::unknown_name(op, key); }
};
using LuaBinding = vm::Binding<LuaArguments>;

}  // namespace

const Op* operator_at(lua_State* L, int index) {
    const lua_CFunction function = lua_tocfunction(L, index);
    if (function != protect<call_bound> && function != protect<call_bound_unary>) return nullptr;
    lua_getupvalue(L, index, 1);
    const auto* op = static_cast<const Op*>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return op;
}

std::vector<Value> bind_arguments(lua_State* L, const Op& op, LuaBinding::Paths* paths) {
    LuaArguments arguments{L, op};
    return LuaBinding(op, arguments, paths).run();
}

namespace {

// Pushes the tensor given for parameter 0 of a call that has been bound. False: it is a number.
bool push_operand(lua_State* L, const Op& op) {
    lua_pushvalue(L, 1);
    if (is_options(L, 1)) {
        lua_pushnil(L);
        while (lua_next(L, 1) && LuaBinding::find_parameter(op, lua_tostring(L, -2)) != 0) lua_pop(L, 1);
    }
    return tensor_at(L, lua_gettop(L)) != nullptr;
}

}  // namespace

int call_operator(lua_State* L, const Op& op) {
    State::of(L).pace(L);
    QuickArguments quick;
    // Operators that write into an operand count its references, so these must exist.
    if (!op.writes() && quick.bind(L, op, lua_gettop(L))) [[likely]]
        return push_results(L, op, run(op, quick.values()));
    Value result = run(op, bind_arguments(L, op));
    if (op.returns_operand && push_operand(L, op)) return 1;
    // An operator that only writes has no result.
    if (op.writes() && result.is_list() && result.items().empty()) return 0;
    return push_results(L, op, std::move(result));
}

void push_operator(lua_State* L, const Op& op) {
    lua_pushlightuserdata(L, const_cast<Op*>(&op));
    lua_pushcclosure(L, protect<call_bound>, 1);
}

void push_unary_operator(lua_State* L, const Op& op) {
    lua_pushlightuserdata(L, const_cast<Op*>(&op));
    lua_pushcclosure(L, protect<call_bound_unary>, 1);
}

}  // namespace lunaria
