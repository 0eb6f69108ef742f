#include "interpreter/bindings/federated_features.h"

#include <cstring>
#include <optional>

#include "core/tensor/device.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

using federated::messages::ElementType;
using federated::messages::Feature;

constexpr std::pair<DType, ElementType> kTypes[] = {
    {DType::f32, ElementType::float32},   {DType::f64, ElementType::float64}, {DType::f16, ElementType::float16},
    {DType::bf16, ElementType::bfloat16}, {DType::i32, ElementType::int32},   {DType::i64, ElementType::int64},
    {DType::i8, ElementType::int8},       {DType::u8, ElementType::uint8},    {DType::boolean, ElementType::boolean}};

Tensor tensor_of(const Feature& feature) {
    for (const auto& [dtype, type] : kTypes) {
        if (type != feature.type) continue;
        Tensor tensor = Tensor::empty(dtype, Shape(std::span<const int64_t>(feature.shape)));
        std::memcpy(tensor.raw(), feature.data.data(), std::min(tensor.nbytes(), feature.data.size()));
        return tensor;
    }
    throw dtype_error("federated", str("the feature '", feature.name, "' is ", name_of(feature.type)));
}

Feature feature_of(std::string name, const Tensor& given, bool aggregated, std::string_view where) {
    Feature feature;
    for (const auto& [dtype, type] : kTypes) {
        if (dtype != given.dtype()) continue;
        const Tensor tensor = given.to_host().contiguous();
        feature.name = std::move(name);
        feature.type = type;
        feature.is_aggregated = aggregated;
        for (int i = 0; i < tensor.rank(); ++i) feature.shape.push_back(tensor.dim(i));
        feature.data.assign(static_cast<const char*>(tensor.raw()), tensor.nbytes());
        return feature;
    }
    throw dtype_error(where,
                      str("the feature '", name, "' is of ", name_of(given.dtype()), ", which messages do not have"));
}

}  // namespace

void push_features(lua_State* L, const std::vector<Feature>& features) {
    lua_createtable(L, static_cast<int>(features.size()), 0);
    lua_Integer i = 0;
    for (const Feature& feature : features) {
        lua_createtable(L, 0, 3);
        push(L, std::string_view(feature.name));
        lua_setfield(L, -2, "name");
        push(L, tensor_of(feature).to(current_place()));
        lua_setfield(L, -2, "tensor");
        lua_pushboolean(L, feature.is_aggregated);
        lua_setfield(L, -2, "aggregated");
        lua_rawseti(L, -2, ++i);
    }
}

std::vector<Feature> features_at(lua_State* L, int index, std::string_view where) {
    std::vector<Feature> features;
    if (lua_isnoneornil(L, index)) return features;
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_Integer i = 1; lua_rawgeti(L, index, i) == LUA_TTABLE; ++i) {
        lua_getfield(L, -1, "name");
        lua_getfield(L, -2, "tensor");
        lua_getfield(L, -3, "aggregated");
        const char* name = lua_tostring(L, -3);
        const Tensor* tensor = tensor_at(L, -2);
        if (!name || !tensor) throw argument_error(where, str("feature ", i, " must have a name and a tensor"));
        features.push_back(feature_of(name, *tensor, lua_isnil(L, -1) || lua_toboolean(L, -1), where));
        lua_pop(L, 4);
    }
    lua_pop(L, 1);
    return features;
}

}  // namespace lunaria
