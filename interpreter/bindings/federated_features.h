// Named tensors of messages (core/federated/messages.h) as Lua values: lists of { name =, tensor =, aggregated = }.
#pragma once

#include <lua.hpp>
#include <string_view>
#include <vector>

#include "core/federated/messages.h"

namespace lunaria {

void push_features(lua_State* L, const std::vector<federated::messages::Feature>& features);
// The list at an absolute index; nil is an empty one. Throws of `where`.
std::vector<federated::messages::Feature> features_at(lua_State* L, int index, std::string_view where);

}  // namespace lunaria
