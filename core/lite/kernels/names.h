// The names that light files have for enumerators.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/lite/kernels/convolution.h"

namespace lunaria::lite::kernels {

// In the order of the enumerators.
inline constexpr std::string_view kWeightTypes[] = {"f32", "f16", "bf16", "q8_0", "q4_0"};
inline constexpr std::string_view kConvolutionMethods[] = {"direct", "winograd2", "winograd4", "depthwise"};
inline constexpr std::string_view kActivations[] = {"none", "relu",         "relu6",      "clip",    "leaky_relu",
                                                    "elu",  "hard_sigmoid", "hard_swish", "sigmoid", "silu",
                                                    "gelu", "gelu_tanh",    "tanh",       "mish"};

// False: there is no such name. Without a name `to` stays as it is.
template <class T, size_t N>
bool read_name(const std::string_view (&names)[N], std::string_view name, T& to) {
    if (name.empty()) return true;
    const auto* const found = std::ranges::find(names, name);
    if (found == std::end(names)) return false;
    to = static_cast<T>(found - names);
    return true;
}

}  // namespace lunaria::lite::kernels
