// The names of ms: which file of the library has each, and the error for a name that there is not.
#include "interpreter/bindings/library_names.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/spelling.h"
#include "core/io/embedded.h"
#include "core/operator/op.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

// The transforms are in one file, which adds all of them to the table.
constexpr std::string_view kTransforms[] = {
    "grad", "value_and_grad", "vjp",        "jvp",        "jacrev",    "jacfwd",     "hessian",
    "vmap", "stop_gradient",  "custom_vjp", "checkpoint", "recompute", "check_grad", "ir"};

// Tables of other files by their names.
constexpr std::pair<std::string_view, const char*> kOthers[] = {
    {"jit", "lunaria.graph"},
    {"jit_report", "lunaria.graph"},
    {"QuantDtype", "lunaria.common.kinds"},
    {"number", "lunaria.common.kinds"},
    {"Int", "lunaria.common.kinds"},
    {"tensor_type", "lunaria.common.kinds"},
    {"TensorType", "lunaria.common.kinds"},
    {"string", "lunaria.common.kinds"},
    {"list_", "lunaria.common.kinds"},
    {"tuple_", "lunaria.common.kinds"},
    {"type_none", "lunaria.common.kinds"},
    {"_null", "lunaria.common.kinds"},
    {"Type", "lunaria.common.kinds"},
    {"issubclass_", "lunaria.common.kinds"},
    {"dtype_to_nptype", "lunaria.common.kinds"},
    {"dtype_to_pytype", "lunaria.common.kinds"},
    {"pytype_to_dtype", "lunaria.common.kinds"},
    {"get_py_obj_dtype", "lunaria.common.kinds"},
    {"mesh", "lunaria.parallel.mesh"},
    {"Layout", "lunaria.parallel.mesh"},
    {"AutoParallel", "lunaria.parallel.auto"},
    {"no_init_parameters", "lunaria.parallel.shapes"},
    {"ParallelMode", "lunaria.context"},
    {"set_auto_parallel_context", "lunaria.context"},
    {"get_auto_parallel_context", "lunaria.context"},
    {"reset_auto_parallel_context", "lunaria.context"},
    {"mutable", "lunaria.nn.composite"},
    {"constexpr", "lunaria.nn.composite"},
    {"jit_class", "lunaria.nn.composite"},
    {"lazy_inline", "lunaria.nn.composite"},
    {"no_inline", "lunaria.nn.composite"},
    {"saved_tensors_hooks", "lunaria.nn.composite"},
    {"linearize", "lunaria.nn.composite"},
    {"derivative", "lunaria.nn.composite"},
    {"jet", "lunaria.nn.composite"},
    {"shard", "lunaria.parallel.shard"},
    {"distribute", "lunaria.parallel.shard"},
    {"reshard", "lunaria.parallel.shard"},
    {"set_parallel", "lunaria.parallel.shard"},
    {"parallel_report", "lunaria.parallel.report"},
    {"JitConfig", "lunaria.nn.jit_config"},
    {"Generator", "lunaria.nn.generator"},
    {"run_check", "lunaria.nn.run_check"},
    {"COOTensor", "lunaria.sparse"},
    {"CSRTensor", "lunaria.sparse"},
    {"Model", "lunaria.train"},
    {"Profiler", "lunaria.profiler"},
    {"RunContext", "lunaria.train"},
    {"save_checkpoint", "lunaria.train.checkpoint"},
    {"load_checkpoint", "lunaria.train.checkpoint"},
    {"load_checkpoint_async", "lunaria.train.checkpoint"},
    {"async_ckpt_wait", "lunaria.train.checkpoint"},
    {"async_ckpt_thread_status", "lunaria.train.checkpoint"},
    {"load_param_into_net", "lunaria.train.checkpoint"},
    {"load_weights", "lunaria.train.checkpoint"},
    {"hint", "lunaria.help.caught"},
    {"load_obf_params_into_net", "lunaria.armour.protection.obfuscation"},
    {"obfuscate_ckpt", "lunaria.armour.protection.obfuscation"},
    {"obfuscate_model", "lunaria.armour.protection.obfuscation"},
    {"rank_list_for_transform", "lunaria.parallel.transform"},
    {"transform_checkpoint_by_rank", "lunaria.parallel.transform"},
    {"transform_checkpoints", "lunaria.parallel.transform"},
    {"rank_list_for_convert", "lunaria.parallel.transform"},
    {"convert_checkpoint_by_rank", "lunaria.parallel.transform"},
    {"convert_checkpoints", "lunaria.parallel.transform"},
    {"merge_pipeline_strategys", "lunaria.parallel.transform"},
    {"merge_sliced_parameter", "lunaria.parallel.transform"},
    {"build_searched_strategy", "lunaria.parallel.transform"},
    {"restore_group_info_list", "lunaria.parallel.transform"},
    {"load_segmented_checkpoints", "lunaria.parallel.transform"},
    {"unified_safetensors", "lunaria.parallel.unify"},
    {"load_distributed_checkpoint", "lunaria.parallel.unify"},
    {"ckpt_to_safetensors", "lunaria.train.checkpoint"},
    {"safetensors_to_ckpt", "lunaria.train.checkpoint"}};

// The error for a name that the library, whose table is at index 1, does not have.
Error missing_name(lua_State* L, const std::string& name) {
    std::vector<std::string_view> names;
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING) names.push_back(lua_tostring(L, -2));
        lua_pop(L, 1);
    }
    for (const std::string_view other : registry().similar(name)) names.push_back(other);
    for (const auto& [known, file] : kOthers) names.push_back(known);
    names.insert(names.end(), std::begin(kTransforms), std::end(kTransforms));
    Error e = argument_error("ms", str("there is no name '", name, "'"));
    const std::string hint = nearest(name, names);
    return hint.empty() ? e : e.hint(hint);
}

}  // namespace

void push_part_names(lua_State* L) {
    lua_newtable(L);
    lua_Integer n = 0;
    const auto add = [&](std::string_view name) {
        push(L, name);
        lua_rawseti(L, -2, ++n);
    };
    for (const std::string_view name : kTransforms) add(name);
    for (const auto& [name, file] : kOthers) add(name);
}

// ms.name for a part of the library that is written in Lua, loaded at the first use.
int load_part(lua_State* L) {
    if (!lua_istable(L, 1) || lua_type(L, 2) != LUA_TSTRING) return 0;
    const std::string name = lua_tostring(L, 2);
    if (std::ranges::find(kTransforms, name) != std::end(kTransforms)) {
        lua_getglobal(L, "require");
        lua_pushliteral(L, "lunaria.transforms");
        lua_call(L, 1, 1);
        lua_getfield(L, -1, name.c_str());
        return 1;
    }
    for (const auto& [known, file] : kOthers)
        if (name == known) {
            lua_getglobal(L, "require");
            lua_pushstring(L, file);
            lua_call(L, 1, 1);
            lua_getfield(L, -1, name.c_str());
            return 1;
        }
    if (!embedded_text("lunaria/" + name + ".lua").data() && !embedded_text("lunaria/" + name + "/init.lua").data()) {
        // ms.tanh is ms.ops.tanh.
        const Op* op = registry().find(name);
        if (!op) throw missing_name(L, name);
        push_operator(L, *op);
        lua_pushvalue(L, 2);
        lua_pushvalue(L, -2);
        lua_rawset(L, 1);
        return 1;
    }
    lua_getglobal(L, "require");
    lua_pushstring(L, ("lunaria." + name).c_str());
    lua_call(L, 1, 1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

}  // namespace lunaria
