// The module behind lunaria/lite/micro.lua: light models as C99.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/io/mapping.h"
#include "core/lite/micro/write.h"
#include "core/lite/runtime/executor.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr std::string_view kLiteMicroWhere = "lite.micro";
using Elements = std::vector<std::byte>;

std::string option_text(lua_State* L, const char* name, std::string_view otherwise) {
    if (!push_option(L, 2, name)) return std::string(otherwise);
    std::string text = luaL_checkstring(L, -1);
    lua_pop(L, 1);
    return text;
}

// Normally distributed floats; zeros as anything else, which are valid as indices and masks.
Elements random_elements(DType dtype, size_t bytes, std::mt19937& engine) {
    Elements elements(bytes);
    std::normal_distribution<float> normal;
    for (size_t at = 0; dtype == DType::f32 && at < bytes; at += sizeof(float)) {
        const float x = normal(engine);
        std::memcpy(elements.data() + at, &x, sizeof(float));
    }
    return elements;
}

// The option "inputs", tensors in the order of the model's inputs; random ones where it is absent.
std::vector<Elements> inputs_of(lua_State* L, const lite::Executor& executor) {
    const lite::Model& model = executor.model();
    std::vector<Elements> inputs;
    std::mt19937 engine(1);
    const bool are_given = push_option(L, 2, "inputs");
    if (are_given && luaL_len(L, -1) != static_cast<lua_Integer>(model.inputs.size()))
        throw argument_error(kLiteMicroWhere,
                             str(luaL_len(L, -1), " inputs are given for ", model.inputs.size(), " of the model"));
    for (size_t i = 0; i < model.inputs.size(); ++i) {
        const lite::Value& value = model.values[model.inputs[i]];
        const size_t bytes = executor.bytes(model.inputs[i]);
        if (!are_given) {
            inputs.push_back(random_elements(value.dtype, bytes, engine));
            continue;
        }
        lua_rawgeti(L, -1, static_cast<lua_Integer>(i) + 1);
        const Tensor* const given = tensor_at(L, -1);
        if (!given)
            throw argument_error(kLiteMicroWhere, str("input ", i + 1, " is ", describe(L, -1), ", not a tensor"));
        const Tensor tensor = given->contiguous();
        if (tensor.dtype() != value.dtype || static_cast<size_t>(tensor.nbytes()) != bytes)
            throw argument_error(kLiteMicroWhere,
                                 str("input '", value.name, "' is ", name_of(tensor.dtype()), tensor.shape(),
                                     "; the model has ", name_of(value.dtype), Shape(executor.shape(model.inputs[i]))));
        const auto* const first = static_cast<const std::byte*>(tensor.raw());
        inputs.emplace_back(first, first + bytes);
        lua_pop(L, 1);
    }
    if (are_given) lua_pop(L, 1);
    return inputs;
}

std::vector<Elements> outputs_of(lite::Executor& executor, const std::vector<Elements>& inputs) {
    std::vector<Elements> outputs;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const Elements& x : inputs) in.push_back(x.data());
    for (const uint32_t v : executor.model().outputs) out.push_back(outputs.emplace_back(executor.bytes(v)).data());
    std::string fault;
    if (!executor.run(in, out, {}, fault)) throw state_error(kLiteMicroWhere, fault);
    return outputs;
}

// micro(path, {target, title, inputs, folder}) -> {files, arena, live, weights}
int micro(lua_State* L) {
    const std::string path = path_at(L, 1, kLiteMicroWhere);
    luaL_checktype(L, 2, LUA_TTABLE);
    lite::micro::Options options;
    const std::string target = option_text(L, "target", "generic");
    if (target != "generic" && target != "cortex-m")
        throw argument_error(kLiteMicroWhere, str("the target '", target, "' is not known: generic or cortex-m"));
    options.target = target == "generic" ? lite::micro::Target::generic : lite::micro::Target::cortex_m;
    options.title = option_text(L, "title", "");
    const std::string folder = option_text(L, "folder", "");

    const std::shared_ptr<Mapping> mapping = Mapping::of(path);
    const Tensor file = mapping->tensor(DType::u8, {static_cast<int64_t>(mapping->size())}, 0);
    std::string fault;
    const auto executor = lite::Executor::make({static_cast<const std::byte*>(file.raw()), mapping->size()},
                                               std::make_shared<lite::Threads>(1, lite::Affinity(), std::vector<int>()),
                                               std::make_shared<lite::Workspace>(), fault);
    if (!executor) throw file_error(path, fault);
    const std::vector<Elements> inputs = inputs_of(L, *executor), outputs = outputs_of(*executor, inputs);
    lite::micro::Sample sample;
    for (const Elements& x : inputs) sample.inputs.emplace_back(x);
    for (const Elements& y : outputs) sample.outputs.emplace_back(y);
    const lite::micro::Written written = lite::micro::write_c(executor->model(), std::span(&sample, 1), options);

    std::error_code wrong;
    std::filesystem::create_directories(folder, wrong);
    lua_newtable(L);
    lua_newtable(L);
    for (size_t i = 0; i < written.files.size(); ++i) {
        const std::string to = folder + "/" + written.files[i].name;
        if (!(std::ofstream(to, std::ios::binary) << written.files[i].text).flush())
            throw file_error(to, "it cannot be written");
        push(L, std::string_view(written.files[i].name));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_setfield(L, -2, "files");
    for (auto [name, number] : {std::pair("arena", written.arena_bytes), std::pair("live", written.live_bytes),
                                std::pair("weights", written.weight_bytes)}) {
        lua_pushinteger(L, static_cast<lua_Integer>(number));
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace

int open_lite_micro(lua_State* L) {
    lua_newtable(L);
    lua_pushcfunction(L, protect<micro>);
    lua_setfield(L, -2, "micro");
    return 1;
}

}  // namespace lunaria
