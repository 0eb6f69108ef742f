#include "interpreter/saving/names.h"

#include <algorithm>

#include "core/ir/text.h"
#include "interpreter/bindings/operators.h"

namespace lunaria {

namespace {

using Use = FunctionNames::Use;

struct Library {
    const char *module, *prefix;
    Use use;
    std::initializer_list<const char*> functions;
};

const Library kLibraries[] = {
    {"_G", "", Use::folded, {"ipairs", "next", "pairs", "rawequal", "rawlen", "select", "tonumber", "type"}},
    {"_G", "", Use::called, {"assert", "error", "pcall", "print", "rawget", "setmetatable", "tostring", "xpcall"}},
    {"_G", "", Use::known, {"getmetatable", "require"}},
    {"debug", "debug.", Use::known, {"getinfo"}},
    {"_G", "", Use::writes, {"rawset"}},
    {"string",
     "string.",
     Use::folded,
     {"byte", "char", "find", "format", "len", "lower", "match", "pack", "packsize", "rep", "reverse", "sub", "unpack",
      "upper"}},
    {"string", "string.", Use::called, {"gmatch", "gsub"}},
    {"math", "math.", Use::folded, {"abs", "acos",  "asin", "atan", "ceil",      "cos",  "deg",
                                    "exp", "floor", "fmod", "log",  "max",       "min",  "modf",
                                    "rad", "sin",   "sqrt", "tan",  "tointeger", "type", "ult"}},
    {"math", "math.", Use::called, {"random"}},
    {"table", "table.", Use::folded, {"concat", "unpack"}},
    {"table", "table.", Use::called, {"pack"}},
    {"table", "table.", Use::writes, {"insert", "move", "remove", "sort"}},
    {"utf8", "utf8.", Use::folded, {"char", "codepoint", "len", "offset"}},
    {"coroutine",
     "coroutine.",
     Use::called,
     {"close", "create", "isyieldable", "resume", "running", "status", "wrap", "yield"}},
    {"lunaria", "ms.", Use::folded, {"is_tensor", "slice"}},
    {"lunaria", "ms.", Use::known, {"is_parameter"}},
    {"lunaria",
     "ms.",
     Use::called,
     {"tensor", "grad", "value_and_grad", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "vmap", "stop_gradient",
      "custom_vjp", "checkpoint", "recompute"}},
    {"lunaria.autodiff", "autodiff.", Use::called, {"fail", "is_float"}},
    {"lunaria.jit", "", Use::known, {"inside"}},
    {"lunaria.nn.arguments", "arguments.", Use::called, {"describe", "fail"}},
    {"lunaria.nn.cell",
     "nn.",
     Use::known,
     {"Cell.cells", "Cell.get_parameters", "Cell.name_cells", "Cell.parameters_dict", "Cell.trainable_params",
      "Cell.untrainable_params"}},
};

class Name final : public Object, public ir::NameHolder {
  public:
    explicit Name(std::string_view name) : name_(name) {}
    std::string_view held_name() const override { return name_; }

  private:
    const std::string name_;
};

// Pushes a module's table; false, and nothing, where there is none.
bool push_module(lua_State* L, const char* module) {
    lua_getglobal(L, "require");
    lua_pushstring(L, module);
    lua_call(L, 1, 1);
    if (lua_istable(L, -1)) return true;
    lua_pop(L, 1);
    return false;
}

// `function`: "name", or "table.name".
Value function_in(LuaHost& host, const char* module, std::string_view function) {
    lua_State* L = host.lua();
    luaL_checkstack(L, 5, "names");
    const int base = lua_gettop(L);
    if (!push_module(L, module)) return {};
    if (const size_t dot = function.find('.'); dot != function.npos) {
        lua_getfield(L, -1, std::string(function.substr(0, dot)).c_str());
        function.remove_prefix(dot + 1);
    }
    lua_getfield(L, -1, std::string(function).c_str());
    Value f = host.to_value(L, -1);
    lua_settop(L, base);
    return f;
}

}  // namespace

FunctionNames::FunctionNames(LuaHost& host) {
    for (const Library& library : kLibraries)
        for (const char* function : library.functions) {
            Value f = function_in(host, library.module, function);
            if (f.kind() != Value::Kind::object) continue;
            entries_.try_emplace(vm::identity_of(f), Entry{std::string(library.prefix) + function, library.use});
            kept_.push_back(std::move(f));
        }
    const Value table[] = {host.new_table(0, 0)};
    kept_.push_back(host.call(function_in(host, "_G", "ipairs"), table)[0]);
    ipairs_step_ = vm::identity_of(kept_.back());
}

bool FunctionNames::Entry::reads() const {
    static constexpr std::string_view kNames[] = {"ipairs",   "next", "pairs", "rawequal",     "rawget",  "rawlen",
                                                  "tonumber", "type", "print", "table.concat", "tostring"};
    static constexpr std::string_view kPrefixes[] = {"ms.", "string.", "math.", "autodiff.", "arguments."};
    return std::ranges::find(kNames, name) != std::end(kNames) ||
           std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

const FunctionNames::Entry* FunctionNames::find(const Value& f) const {
    auto found = f.kind() == Value::Kind::object ? entries_.find(vm::identity_of(f)) : entries_.end();
    return found == entries_.end() ? nullptr : &found->second;
}

Value function_named(LuaHost& host, std::string_view name) {
    constexpr std::string_view kOperators = "ms.ops.";
    if (name.starts_with(kOperators)) {
        const Op* op = registry().find(name.substr(kOperators.size()));
        if (!op) return {};
        lua_State* L = host.lua();
        luaL_checkstack(L, 2, "names");
        push_operator(L, *op);
        Value f = host.to_value(L, -1);
        lua_pop(L, 1);
        return f;
    }
    for (const Library& library : kLibraries) {
        const std::string_view prefix = library.prefix;
        if (library.use == Use::known || !name.starts_with(prefix)) continue;
        for (const char* function : library.functions)
            if (name.substr(prefix.size()) == function) return function_in(host, library.module, function);
    }
    return {};
}

Value operator_name(const Op& op) { return name_value(str("ms.ops.", op.name())); }

Value name_value(std::string_view name) { return vm::make_object<Name>(name); }

}  // namespace lunaria
