// The module behind lunaria/lite/model.lua: light models run.
#include <chrono>
#include <cstring>
#include <mutex>

#include "core/base/error.h"
#include "core/io/mapping.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/light_model.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

constexpr std::string_view kLiteModelWhere = "lite.Model";
constexpr const char* kLiteModelName = "lunaria.running_light_model";

using LiteModelHandle = std::unique_ptr<RunningModel>;
RunningModel& lite_model_at(lua_State* L) { return light_model_at(L, 1); }

void push_value(lua_State* L, const lite::Executor& executor, uint32_t index) {
    const lite::Value& v = executor.model().values[index];
    lua_createtable(L, 0, 3);
    push(L, std::string_view(v.name));
    lua_setfield(L, -2, "name");
    push(L, v.dtype);
    lua_setfield(L, -2, "dtype");
    push(L, Shape(executor.shape(index)));
    lua_setfield(L, -2, "shape");
}
void push_values(lua_State* L, const lite::Executor& executor, const std::vector<uint32_t>& indices, const char* name) {
    lua_createtable(L, static_cast<int>(indices.size()), 0);
    for (size_t i = 0; i < indices.size(); ++i) {
        push_value(L, executor, indices[i]);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_setfield(L, -2, name);
}

// build(path, threads, affinity, cores, key) -> model: `key` in hexadecimal digits, or an empty text.
int build(lua_State* L) {
    auto model = std::make_unique<RunningModel>();
    model->path = path_at(L, 1, kLiteModelWhere);
    const auto threads = static_cast<int>(luaL_checkinteger(L, 2));
    const auto affinity = static_cast<lite::Affinity>(luaL_checkinteger(L, 3));
    std::vector<int> cores;
    for (const int64_t core : integers_at(L, 4, kLiteModelWhere, "cores")) cores.push_back(static_cast<int>(core));
    const auto mapping = Mapping::of(model->path);
    model->file = mapping->tensor(DType::u8, Shape{static_cast<int64_t>(mapping->size())}, 0);
    std::span<const std::byte> bytes{static_cast<const std::byte*>(model->file.raw()), mapping->size()};
    if (lite::is_encrypted(bytes)) {
        const std::string key = lite::key_of(luaL_checkstring(L, 5));
        if (key.empty()) throw file_error(model->path, "is encrypted: the key is missing, or no key");
        lite::Fault damage;
        if (!lite::decrypt(bytes, key, model->plain, damage)) throw file_error(model->path, damage.message());
        bytes = model->plain.span();
    }
    std::string fault;
    model->executor = lite::Executor::make(
        bytes,
        std::make_shared<lite::Threads>(threads > 0 ? threads : lite::processor_count(), affinity, std::move(cores)),
        std::make_shared<lite::Workspace>(), fault);
    if (!model->executor) throw file_error(model->path, fault);
    push_light_model(L, std::move(model));
    return 1;
}

// about(model) -> { inputs, outputs, dimensions }
int about(lua_State* L) {
    const lite::Executor& executor = *lite_model_at(L).executor;
    lua_newtable(L);
    push_values(L, executor, executor.model().inputs, "inputs");
    push_values(L, executor, executor.model().outputs, "outputs");
    lua_newtable(L);
    lua_Integer i = 0;
    for (const lite::Dimension& d : executor.model().dimensions) {
        push(L, std::string_view(d.name));
        lua_rawseti(L, -2, ++i);
    }
    lua_setfield(L, -2, "dimensions");
    return 1;
}

// resize(model, { shape ... })
int resize(lua_State* L) {
    RunningModel& model = lite_model_at(L);
    std::vector<std::vector<int64_t>> shapes;
    for (lua_Integer i = 1; i <= luaL_len(L, 2); ++i) {
        lua_rawgeti(L, 2, i);
        shapes.push_back(integers_at(L, -1, kLiteModelWhere, "shape"));
        lua_pop(L, 1);
    }
    std::string fault;
    if (!model.executor->resize(shapes, fault)) fail_of(model, fault);
    return 0;
}

struct Clock {
    std::vector<double>& seconds;
    std::chrono::steady_clock::time_point start{};
};

// predict(model, { tensor ... }, times) -> { tensor ... }: `times` notes the seconds of each step.
int predict(lua_State* L) {
    RunningModel& model = lite_model_at(L);
    lite::Executor& executor = *model.executor;
    const std::vector<uint32_t>& outputs = executor.model().outputs;
    std::vector<const void*> from;
    const std::vector<Tensor> given = light_inputs(L, 2, model, executor.model().inputs.size(), from);
    std::vector<Tensor> results;
    std::vector<void*> to;
    for (const uint32_t v : outputs) {
        results.push_back(Tensor::empty(executor.model().values[v].dtype, Shape(executor.shape(v))));
        to.push_back(results.back().raw());
    }
    lite::Observer observer;
    Clock clock{model.seconds, {}};
    const bool has_times = lua_toboolean(L, 3);
    if (has_times) {
        model.seconds.assign(executor.model().steps.size(), 0);
        observer.context = &clock;
        observer.before = [](void* c, size_t) {
            static_cast<Clock*>(c)->start = std::chrono::steady_clock::now();
            return true;
        };
        observer.after = [](void* c, size_t step) {
            auto& clock = *static_cast<Clock*>(c);
            const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - clock.start;
            clock.seconds[step] = passed.count();
            return true;
        };
    }
    std::string fault;
    const auto start = std::chrono::steady_clock::now();
    if (!executor.run(from, to, observer, fault)) fail_of(model, fault);
    if (has_times) model.whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    lua_createtable(L, static_cast<int>(results.size()), 0);
    for (size_t i = 0; i < results.size(); ++i) {
        push(L, results[i]);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    return 1;
}

// steps(model) -> { { kind, label, node, source, flops, seconds } ... }, seconds: of the last run with times.
int steps(lua_State* L) {
    const RunningModel& model = lite_model_at(L);
    const std::vector<lite::Step>& list = model.executor->model().steps;
    lua_createtable(L, static_cast<int>(list.size()), 0);
    for (size_t i = 0; i < list.size(); ++i) {
        lua_createtable(L, 0, 6);
        for (const auto& [name, text] : {std::pair<const char*, const std::string&>{"kind", list[i].kind},
                                         {"label", list[i].label},
                                         {"node", list[i].node},
                                         {"source", list[i].source}}) {
            push(L, std::string_view(text));
            lua_setfield(L, -2, name);
        }
        lua_pushnumber(L, list[i].flops);
        lua_setfield(L, -2, "flops");
        lua_pushnumber(L, i < model.seconds.size() ? model.seconds[i] : 0);
        lua_setfield(L, -2, "seconds");
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_pushnumber(L, model.whole);
    return 2;
}

// update(model, name, tensor)
int update(lua_State* L) {
    RunningModel& model = lite_model_at(L);
    const std::string name = luaL_checkstring(L, 2);
    const Tensor weight = check_tensor(L, 3, kLiteModelWhere, name).contiguous();
    std::string fault;
    const size_t bytes = static_cast<size_t>(weight.size()) * size_of(weight.dtype());
    if (!model.executor->update(name, weight.raw(), bytes, fault)) fail_of(model, fault);
    return 0;
}

// save(model, path)
int save_model(lua_State* L) {
    const RunningModel& model = lite_model_at(L);
    std::string fault;
    if (!model.executor->save(path_at(L, 2, kLiteModelWhere), fault)) fail_of(model, fault);
    return 0;
}

// memory(model) -> { arena, scratch, own }
int memory(lua_State* L) {
    const lite::Executor& executor = *lite_model_at(L).executor;
    lua_createtable(L, 0, 3);
    for (const auto& [name, bytes] : {std::pair<const char*, size_t>{"arena", executor.arena_bytes()},
                                      {"scratch", executor.scratch_bytes()},
                                      {"own", executor.own_bytes()}}) {
        lua_pushinteger(L, static_cast<lua_Integer>(bytes));
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace

RunningModel& light_model_at(lua_State* L, int index) { return *handle_at<LiteModelHandle>(L, index, kLiteModelName); }
void push_light_model(lua_State* L, std::unique_ptr<RunningModel> model) {
    push_handle<LiteModelHandle>(L, std::move(model), kLiteModelName);
}

void fail_of(const RunningModel& model, std::string_view fault) {
    throw state_error(kLiteModelWhere, str(model.path, ": ", fault));
}

std::vector<Tensor> light_inputs(lua_State* L, int index, const RunningModel& model, size_t count,
                                 std::vector<const void*>& from) {
    const lite::Executor& executor = *model.executor;
    const std::vector<uint32_t>& inputs = executor.model().inputs;
    std::vector<Tensor> given;
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, index, static_cast<lua_Integer>(i) + 1);
        const Tensor& x = check_tensor(L, -1, kLiteModelWhere, str("input ", i));
        const lite::Value& wanted = executor.model().values[inputs[i]];
        const Shape shape(executor.shape(inputs[i]));
        if (x.dtype() != wanted.dtype || !(x.shape() == shape))
            throw argument_error(kLiteModelWhere, str("input ", i, wanted.name.empty() ? "" : " (", wanted.name,
                                                      wanted.name.empty() ? "" : ")", " is ", name_of(x.dtype()),
                                                      x.shape(), "; the model takes ", name_of(wanted.dtype), shape))
                .hint(executor.model().dimensions.empty() ? "" : "resize() gives a model with open sizes other shapes");
        given.push_back(x.contiguous());
        from.push_back(given.back().raw());
        lua_pop(L, 1);
    }
    return given;
}

int open_lite_model(lua_State* L) {
    make_handle_type(L, kLiteModelName, protect<release_handle<LiteModelHandle>>);
    lua_newtable(L);
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"build", protect<build>},
                                  {"about", protect<about>},
                                  {"resize", protect<resize>},
                                  {"predict", protect<predict>},
                                  {"steps", protect<steps>},
                                  {"update", protect<update>},
                                  {"save", protect<save_model>},
                                  {"memory", protect<memory>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    add_lite_trainer(L);
    return 1;
}

}  // namespace lunaria
