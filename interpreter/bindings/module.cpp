// The table that `require "lunaria"` returns, usually called ms.
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "backends/devices.h"
#include "core/base/spelling.h"
#include "core/io/embedded.h"
#include "core/memory/memory.h"
#include "core/parallel/laid.h"
#include "core/random/random.h"
#include "core/run/precision.h"
#include "core/run/shapes_device.h"
#include "core/tensor/device.h"
#include "core/threads/threads.h"
#include "interpreter/bindings/field_calls.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/syntax.h"
#include "interpreter/jit/function.h"
#include "interpreter/jit/hot.h"
#include "interpreter/loader/loader.h"
#include "interpreter/protect.h"
#include "interpreter/values/devices.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/parts.h"
#include "interpreter/values/table_tensor.h"
#include "interpreter/values/values.h"
#include "jit/graph/operator_loop.h"
#include "jit/vm/recursion_limit.h"

namespace lunaria {

namespace {

enum Mode : lua_Integer { graph_mode = 0, pynative_mode = 1 };

// ms.tensor(data [, dtype]), ms.tensor(data, {dtype = ...})
int tensor(lua_State* L) {
    if (lua_gettop(L) == 0) throw argument_error("tensor", "missing argument 1: data is expected");
    std::optional<DType> dtype;
    if (is_options(L, 2)) {
        check_options(L, 2, "tensor", {"dtype"});
        push_option(L, 2, "dtype");
        dtype = dtype_at(L, -1, "tensor");
    } else {
        dtype = dtype_at(L, 2, "tensor");
    }
    push(L, tensor_from(L, 1, dtype));
    return 1;
}

int is_tensor(lua_State* L) {
    TensorBody** place = State::of(L).memory().handle(lua_touserdata(L, 1));
    lua_pushboolean(L, place && *place);
    return 1;
}

int clock_ns(lua_State* L) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    lua_pushinteger(L, now.tv_sec * lua_Integer{1000000000} + now.tv_nsec);
    return 1;
}

int set_seed(lua_State* L) {
    const int64_t seed = integer_at(L, 1, "set_seed", "seed");
    if (seed < 0) throw value_error("set_seed", str("seed must not be negative, got ", seed));
    default_generator().set_seed(static_cast<uint64_t>(seed));
    return 0;
}

int get_seed(lua_State* L) {
    lua_pushinteger(L, static_cast<lua_Integer>(default_generator().seed()));
    return 1;
}

// The state of the generator as a tensor of two integers, and back: for checkpoints.
int get_rng_state(lua_State* L) {
    const RandomStream state = default_generator().state();
    const int64_t words[] = {static_cast<int64_t>(state.seed), static_cast<int64_t>(state.counter)};
    push(L, Tensor::from<int64_t>(words, {2}));
    return 1;
}

int set_rng_state(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "set_rng_state", "state");
    if (t.size() != 2 || t.dtype() != DType::i64)
        throw value_error("set_rng_state", str("state must be what get_rng_state gave, got ", describe(L, 1)));
    default_generator().set_state({static_cast<uint64_t>(t.integer_at(0)), static_cast<uint64_t>(t.integer_at(1))});
    return 0;
}

int set_num_threads(lua_State* L) {
    const int64_t n = integer_at(L, 1, "set_num_threads", "n");
    if (n < 1 || n > 1024) throw value_error("set_num_threads", str("n must be between 1 and 1024, got ", n));
    lunaria::set_num_threads(static_cast<int>(n));
    return 0;
}

int get_num_threads(lua_State* L) {
    lua_pushinteger(L, num_threads());
    return 1;
}

int set_recursion_limit(lua_State* L) {
    constexpr auto kMost = static_cast<int64_t>(vm::kMostCalls);
    const int64_t n = lua_isnoneornil(L, 1) ? kMost : integer_at(L, 1, "set_recursion_limit", "recursion_limit");
    if (n < 1 || n > kMost)
        throw value_error("set_recursion_limit", str("recursion_limit must be between 1 and ", kMost, ", got ", n));
    vm::set_recursion_limit(static_cast<size_t>(n));
    return 0;
}

int memory_statistics(lua_State* L) {
    const MemoryStats s = memory_stats();
    lua_createtable(L, 0, 4);
    const std::pair<const char*, int64_t> rows[] = {{"live_bytes", s.live_bytes},
                                                    {"peak_bytes", s.peak_bytes},
                                                    {"cached_bytes", s.cached_bytes},
                                                    {"allocations", s.allocations}};
    for (auto [name, value] : rows) {
        lua_pushinteger(L, value);
        lua_setfield(L, -2, name);
    }
    return 1;
}

int reset_peak(lua_State*) {
    reset_peak_memory();
    return 0;
}

int empty_cache(lua_State* L) {
    lua_gc(L, LUA_GCCOLLECT);
    empty_memory_cache();
    return 0;
}

// The option of set_context that allows operators to run on the host.
std::optional<bool> fallback_option(lua_State* L) {
    if (!push_option(L, 1, "device_fallback")) return {};
    if (!lua_isboolean(L, -1))
        throw argument_error("set_context", str("device_fallback must be true or false, got ", describe(L, -1)));
    return lua_toboolean(L, -1);
}
// The option that allows the operands of products to be rounded.
std::optional<bool> precision_option(lua_State* L) {
    if (!push_option(L, 1, "float32_matmul_precision")) return {};
    const std::string_view text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (text != "highest" && text != "high")
        throw value_error("set_context",
                          str("float32_matmul_precision must be \"highest\" or \"high\", got ", describe(L, -1)));
    return text == "high";
}

// The option for what graph mode compiles; empty where it is not given.
std::string level_option(lua_State* L) {
    if (!push_option(L, 1, "jit_level")) return {};
    const std::string_view text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (text != "O0" && text != "O1" && text != "auto")
        throw value_error("set_context", str("jit_level must be \"O0\", \"O1\" or \"auto\", got ", describe(L, -1)));
    return std::string(text);
}

int set_context(lua_State* L) {
    if (!lua_istable(L, 1))
        throw argument_error("set_context",
                             str("a table of settings is expected, such as { mode = ms.GRAPH_MODE }, got ",
                                 lua_isnone(L, 1) ? "nothing" : describe(L, 1)));
    check_options(L, 1, "set_context",
                  {"mode", "jit_level", "device_target", "device_id", "device_fallback", "deterministic",
                   "runtime_num_threads", "float32_matmul_precision"});
    // All options are checked before one is set.
    std::optional<int64_t> mode, threads;
    std::optional<bool> deterministic;
    if (push_option(L, 1, "mode")) {
        mode = integer_at(L, -1, "set_context", "mode");
        if (mode != pynative_mode && mode != graph_mode)
            throw value_error("set_context", str("mode must be ms.GRAPH_MODE or ms.PYNATIVE_MODE, got ", *mode));
    }
    const std::string level = level_option(L);
    if (push_option(L, 1, "deterministic")) {
        const std::string_view text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        if (!lua_isboolean(L, -1) && text != "ON" && text != "OFF")
            throw value_error("set_context",
                              str("deterministic must be true, false, \"ON\" or \"OFF\", got ", describe(L, -1)));
        deterministic = lua_isboolean(L, -1) ? lua_toboolean(L, -1) : text == "ON";
    }
    if (push_option(L, 1, "runtime_num_threads")) {
        threads = integer_at(L, -1, "set_context", "runtime_num_threads");
        if (*threads < 1 || *threads > 1024)
            throw value_error("set_context", str("runtime_num_threads must be between 1 and 1024, got ", *threads));
    }
    Device* device = nullptr;
    if (push_option(L, 1, "device_target")) device = &device_at(L, -1, "set_context", "device_target");
    const std::optional<bool> fallback = fallback_option(L), rounded = precision_option(L);
    if (push_option(L, 1, "device_id")) {
        const int64_t id = integer_at(L, -1, "set_context", "device_id");
        if (id != 0) throw value_error("set_context", str("device_id must be 0, got ", id));
    }
    jit::push_mode(L);
    const int settings = lua_gettop(L);
    if (deterministic) {
        lua_pushboolean(L, *deterministic);
        lua_setfield(L, settings, "deterministic");
    }
    if (!level.empty()) {
        push(L, std::string_view(level));
        lua_setfield(L, settings, "jit_level");
    }
    if (threads) lunaria::set_num_threads(static_cast<int>(*threads));
    if (device) set_current_device(device);
    if (fallback) allow_fallback(*fallback);
    if (rounded) allow_rounded_products(*rounded);
    if (mode) {
        lua_pushboolean(L, *mode == graph_mode);
        lua_setfield(L, settings, "graph");
        jit::watch_functions(L, *mode == graph_mode);
    }
    return 0;
}

bool is_deterministic(lua_State* L) {
    jit::push_mode(L);
    lua_getfield(L, -1, "deterministic");
    const bool yes = lua_toboolean(L, -1);
    lua_pop(L, 2);
    return yes;
}

int get_context(lua_State* L) {
    const std::string name = luaL_checkstring(L, 1);
    if (name == "mode") {
        jit::push_mode(L);
        lua_getfield(L, -1, "graph");
        lua_pushinteger(L, lua_toboolean(L, -1) ? graph_mode : pynative_mode);
    } else if (name == "jit_level") {
        jit::push_mode(L);
        lua_getfield(L, -1, "jit_level");
    } else if (name == "device_target")
        push(L, current_device()->name());
    else if (name == "device_id")
        lua_pushinteger(L, 0);
    else if (name == "device_fallback")
        lua_pushboolean(L, allows_fallback());
    else if (name == "deterministic")
        lua_pushstring(L, is_deterministic(L) ? "ON" : "OFF");
    else if (name == "runtime_num_threads")
        lua_pushinteger(L, num_threads());
    else if (name == "float32_matmul_precision")
        lua_pushstring(L, rounds_products() ? "high" : "highest");
    else
        throw argument_error("get_context",
                             str("there is no setting '", name,
                                 "'; there are: mode, jit_level, device_target, device_id, "
                                 "device_fallback, deterministic, runtime_num_threads, float32_matmul_precision"));
    return 1;
}

// ms.slice(stop), ms.slice(start, stop [, step]): for x[{0, ms.slice(1, 3)}]. nil: from or to the end.
int slice(lua_State* L) {
    const int n = lua_gettop(L);
    if (n > 3) throw argument_error("slice", str("takes at most 3 arguments, got ", n));
    lua_createtable(L, 0, 3);
    const char* const names[] = {"start", "stop", "step"};
    for (int i = 0; i < n; ++i) {
        const int field = n == 1 ? 1 : i;
        if (lua_isnil(L, i + 1)) continue;
        lua_pushinteger(L, integer_at(L, i + 1, "slice", names[field]));
        lua_setfield(L, -2, names[field]);
    }
    luaL_setmetatable(L, "lunaria.slice");
    return 1;
}

int slice_text(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    std::string text = "slice(";
    for (const char* name : {"start", "stop", "step"}) {
        lua_getfield(L, 1, name);
        text += luaL_tolstring(L, -1, nullptr);
        text += *name == 's' && std::strcmp(name, "step") == 0 ? ")" : ", ";
        lua_pop(L, 2);
    }
    push(L, std::string_view(text));
    return 1;
}

// The error for an operator that does not exist. Upvalue 1: the name of the table.
int missing_operator(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    const std::string table = lua_tostring(L, lua_upvalueindex(1));
    if (lua_type(L, 2) != LUA_TSTRING) throw argument_error(table, str("has no field ", describe(L, 2)));
    const std::string_view name = lua_tostring(L, 2);
    if (table == "ms.ops") {
        // MindSpore's programs call the module by these names, as P, F and C.
        for (std::string_view same : {"functional", "operations", "composite", "primitive"})
            if (name == same) {
                lua_pushvalue(L, 1);
                return 1;
            }
        lua_getglobal(L, "require");
        lua_pushliteral(L, "lunaria.nn.primitives");
        lua_call(L, 1, 1);
        lua_getfield(L, -1, "find");
        lua_pushvalue(L, 2);
        lua_call(L, 1, 1);
        if (!lua_isnil(L, -1)) return 1;
        lua_settop(L, 2);
    }
    std::vector<std::string_view> names;
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING) names.push_back(lua_tostring(L, -2));
        lua_pop(L, 1);
    }
    const std::string hint = nearest(name, names);
    Error e = argument_error(table, str("there is no operator '", name, "'"));
    throw hint.empty() ? e : e.hint(hint);
}

void set_index(lua_State* L, lua_CFunction function, const char* name) {
    lua_createtable(L, 0, 1);
    lua_pushstring(L, name);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

// The searcher for the Lua files in the binary: "lunaria.nn.dense" is lunaria/nn/dense.lua or
// lunaria/nn/dense/init.lua.
int search_embedded(lua_State* L) {
    std::string path = luaL_checkstring(L, 1);
    std::ranges::replace(path, '.', '/');
    for (const std::string& file : {path + ".lua", path + "/init.lua"}) {
        const std::string_view text = embedded_text(file);
        if (!text.data()) continue;
        State::of(L).loader().compile(L, text, std::string(kLibraryChunks) + file);
        lua_pushstring(L, file.c_str());
        return 2;
    }
    lua_pushstring(L, str("no file '", path, ".lua' in the binary").c_str());
    return 1;
}

constexpr std::pair<const char*, lua_CFunction> kFunctions[] = {
    {"tensor", protect<tensor>},
    {"Tensor", protect<tensor>},
    {"is_tensor", protect<is_tensor>},
    {"clock", protect<clock_ns>},
    {"set_seed", protect<set_seed>},
    {"get_seed", protect<get_seed>},
    {"get_rng_state", protect<get_rng_state>},
    {"set_rng_state", protect<set_rng_state>},
    {"set_num_threads", protect<set_num_threads>},
    {"get_num_threads", protect<get_num_threads>},
    {"set_recursion_limit", protect<set_recursion_limit>},
    {"memory_stats", protect<memory_statistics>},
    {"reset_peak_memory_stats", protect<reset_peak>},
    {"empty_cache", protect<empty_cache>},
    {"set_context", protect<set_context>},
    {"get_context", protect<get_context>},
    {"slice", protect<slice>},
};

}  // namespace

void bind_dtypes(lua_State* L) {
    constexpr std::pair<const char*, DType> kNames[] = {{"bool_", DType::boolean},
                                                        {"uint8", DType::u8},
                                                        {"int8", DType::i8},
                                                        {"int16", DType::i16},
                                                        {"int32", DType::i32},
                                                        {"int64", DType::i64},
                                                        {"float16", DType::f16},
                                                        {"bfloat16", DType::bf16},
                                                        {"float32", DType::f32},
                                                        {"float64", DType::f64},
                                                        {"complex64", DType::c64},
                                                        {"half", DType::f16},
                                                        {"float_", DType::f32},
                                                        {"double", DType::f64},
                                                        {"int_", DType::i64},
                                                        {"long", DType::i64},
                                                        {"short", DType::i16},
                                                        {"byte", DType::i8},
                                                        {"bool", DType::boolean},
                                                        {"single", DType::f32},
                                                        {"uint16", DType::u16},
                                                        {"uint32", DType::u32},
                                                        {"uint64", DType::u64},
                                                        {"complex128", DType::c128},
                                                        {"float8_e4m3fn", DType::f8e4m3},
                                                        {"float8_e5m2", DType::f8e5m2},
                                                        {"qint4x2", DType::q4x2},
                                                        {"cfloat", DType::c64},
                                                        {"cdouble", DType::c128},
                                                        {"intc", DType::i32},
                                                        {"intp", DType::i64},
                                                        {"ubyte", DType::u8},
                                                        {"ushort", DType::u16},
                                                        {"uintc", DType::u32},
                                                        {"uintp", DType::u64},
                                                        {"uint", DType::u64}};
    for (auto [name, dtype] : kNames) {
        push(L, dtype);
        lua_setfield(L, -2, name);
    }
}

void bind_operators(lua_State* L) {
    const auto& all = registry().all();
    lua_createtable(L, 0, static_cast<int>(all.size() + all.size() / 2));
    for (const auto& op : all) {
        push_operator(L, *op);
        for (const char* alias : op->aliases) {
            lua_pushvalue(L, -1);
            lua_setfield(L, -3, alias);
        }
        push(L, op->name());
        lua_insert(L, -2);
        lua_rawset(L, -3);
    }
    set_index(L, protect<missing_operator>, "ms.ops");
    lua_setfield(L, -2, "ops");

    // The operators that draw numbers also have a table of their own.
    lua_newtable(L);
    for (const auto& op : all) {
        if (!op->draws()) continue;
        push_operator(L, *op);
        push(L, op->name());
        lua_insert(L, -2);
        lua_rawset(L, -3);
    }
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"seed", protect<set_seed>},
                                  {"get_state", protect<get_rng_state>},
                                  {"set_state", protect<set_rng_state>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    set_index(L, protect<missing_operator>, "ms.random");
    lua_setfield(L, -2, "random");
}

void bind_context(lua_State* L) {
    for (auto [name, function] : kFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    lua_pushinteger(L, graph_mode);
    lua_setfield(L, -2, "GRAPH_MODE");
    lua_pushinteger(L, pynative_mode);
    lua_setfield(L, -2, "PYNATIVE_MODE");
    lua_pushliteral(L, LUNARIA_VERSION);
    lua_setfield(L, -2, "version");
    luaL_newmetatable(L, "lunaria.slice");
    lua_pushcfunction(L, protect<slice_text>);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
    // A new axis in an index: x[{ms.newaxis, 0}].
    lua_createtable(L, 0, 0);
    luaL_newmetatable(L, "lunaria.newaxis");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "newaxis");
}

// Applies LUNARIA_NUM_THREADS, once in a process; set_num_threads may change the number later.
void set_threads_of_environment() {
    static std::atomic<bool> done{false};
    const char* text = std::getenv("LUNARIA_NUM_THREADS");
    if (!text || !*text || done) return;
    int n = 0;
    const char* end = text + std::strlen(text);
    const auto [rest, problem] = std::from_chars(text, end, n);
    if (problem != std::errc() || rest != end || n < 1 || n > 1024)
        throw value_error("LUNARIA_NUM_THREADS", str("the number of threads must be 1 to 1024, got '", text, "'"));
    lunaria::set_num_threads(n);
    done = true;
}

int open_lunaria(lua_State* L) {
    set_threads_of_environment();
    if (!State::of(L).is_worker()) {
        set_up_devices();
        // Beside those of the back ends, which know no meshes.
        std::vector<Device*> all(devices().begin(), devices().end());
        all.push_back(&parallel::mesh_device());
        all.push_back(&shapes_device());
        set_devices(all);
        graph::offer_operator_loops();
    }
    lua_newtable(L);
    bind_dtypes(L);
    bind_tensors(L);
    bind_parameters(L);
    bind_operators(L);
    bind_context(L);
    bind_field_calls(L);
    bind_devices(L);
    bind_io(L);
    bind_checkpoints(L);
    bind_gguf(L);
    bind_events(L);
    bind_session(L);
    bind_json(L);
    bind_dlpack(L);
    bind_ir(L);
    bind_display(L);
    set_index(L, protect<load_part>, "ms");
    return 1;
}

void open_libraries(lua_State* L) {
    lua_getglobal(L, LUA_LOADLIBNAME);
    lua_getfield(L, -1, "preload");
    lua_pushcfunction(L, protect<open_lunaria>);
    lua_setfield(L, -2, "lunaria");
    lua_pushcfunction(L, protect<open_autodiff>);
    lua_setfield(L, -2, "lunaria.autodiff");
    lua_pushcfunction(L, protect<open_custom_ops>);
    lua_setfield(L, -2, "lunaria.custom_ops");
    lua_pushcfunction(L, protect<open_registry>);
    lua_setfield(L, -2, "lunaria.registry");
    lua_pushcfunction(L, protect<open_syntax>);
    lua_setfield(L, -2, "lunaria.syntax");
    lua_pushcfunction(L, protect<open_onnx>);
    lua_setfield(L, -2, "lunaria.onnx_files");
    lua_pushcfunction(L, protect<open_insight>);
    lua_setfield(L, -2, "lunaria.insight_core");
    lua_pushcfunction(L, protect<open_insight_graph>);
    lua_setfield(L, -2, "lunaria.insight_graph_core");
    lua_pushcfunction(L, protect<open_lite>);
    lua_setfield(L, -2, "lunaria.lite_core");
    lua_pushcfunction(L, protect<open_lite_model>);
    lua_setfield(L, -2, "lunaria.lite_model_core");
    lua_pushcfunction(L, protect<open_lite_micro>);
    lua_setfield(L, -2, "lunaria.lite_micro_core");
    lua_pushcfunction(L, protect<open_watch>);
    lua_setfield(L, -2, "lunaria.watching");
    lua_pushcfunction(L, protect<open_parts>);
    lua_setfield(L, -2, "lunaria.set_parts");
    lua_pushcfunction(L, protect<open_data>);
    lua_setfield(L, -2, "lunaria.data");
    lua_pushcfunction(L, protect<open_steps>);
    lua_setfield(L, -2, "lunaria.steps");
    lua_pushcfunction(L, protect<open_population>);
    lua_setfield(L, -2, "lunaria.population");
    lua_pushcfunction(L, protect<open_rounds>);
    lua_setfield(L, -2, "lunaria.rounds");
    lua_pushcfunction(L, protect<open_words>);
    lua_setfield(L, -2, "lunaria.words");
    lua_pushcfunction(L, protect<open_serving>);
    lua_setfield(L, -2, "lunaria.serving");
    lua_pushcfunction(L, protect<open_federated_secure>);
    lua_setfield(L, -2, "lunaria.federated_secure");
    lua_pushcfunction(L, protect<open_federated_compression>);
    lua_setfield(L, -2, "lunaria.federated_compression");
    lua_pushcfunction(L, protect<open_federated_server>);
    lua_setfield(L, -2, "lunaria.federated_server_core");
    lua_pushcfunction(L, protect<open_federated_client>);
    lua_setfield(L, -2, "lunaria.federated_client_core");
    lua_pushcfunction(L, protect<open_gradients>);
    lua_setfield(L, -2, "lunaria.gradients");
    lua_pushcfunction(L, protect<open_layouts>);
    lua_setfield(L, -2, "lunaria.layouts");
    lua_pushcfunction(L, protect<open_ranks>);
    lua_setfield(L, -2, "lunaria.ranks");
    lua_pushcfunction(L, protect<open_vertical>);
    lua_setfield(L, -2, "lunaria.vertical");
    lua_pushcfunction(L, protect<open_plans>);
    lua_setfield(L, -2, "lunaria.plans");
    lua_pushcfunction(L, protect<open_profiling>);
    lua_setfield(L, -2, "lunaria.profiling");
    lua_pushcfunction(L, protect<open_ascend>);
    lua_setfield(L, -2, "lunaria.ascend_core");
    lua_pushcfunction(L, protect<open_devices>);
    lua_setfield(L, -2, "lunaria.devices");
    lua_pushcfunction(L, protect<open_shards>);
    lua_setfield(L, -2, "lunaria.shards");
    lua_pushcfunction(L, protect<open_schedules>);
    lua_setfield(L, -2, "lunaria.schedules");
    lua_pushcfunction(L, protect<open_laid>);
    lua_setfield(L, -2, "lunaria.laid");
    lua_pushcfunction(L, protect<open_rendering>);
    lua_setfield(L, -2, "lunaria.rendering");
    lua_pushcfunction(L, protect<open_frontend>);
    lua_setfield(L, -2, "lunaria.frontend");
    lua_pushcfunction(L, protect<jit::open>);
    lua_setfield(L, -2, "lunaria.jit");
    lua_pop(L, 1);
    // After the preloaded modules, before files: a folder called lunaria must not hide the library.
    lua_getfield(L, -1, "searchers");
    for (lua_Integer i = luaL_len(L, -1); i >= 2; --i) {
        lua_rawgeti(L, -1, i);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushcfunction(L, protect<search_embedded>);
    lua_rawseti(L, -2, 2);
    lua_pop(L, 2);
}

}  // namespace lunaria
