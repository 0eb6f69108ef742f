// The dtype of a tensor that is made of a table of numbers, booleans and tensors.
#pragma once

#include <optional>

#include "core/tensor/dtype.h"

namespace lunaria {

struct ElementKinds {
    std::optional<DType> tensors;  // of the tensors among the elements
    bool floats = false, integers = false, booleans = false;

    void add_tensor(DType dtype) { tensors = tensors ? promote(*tensors, dtype) : dtype; }
    DType joint() const {
        ElementKinds all = *this;
        if (floats) all.add_tensor(tensors && is_float(*tensors) ? *tensors : DType::f32);
        if (integers && !(all.tensors && (is_float(*all.tensors) || is_integer(*all.tensors))))
            all.add_tensor(DType::i64);
        if (booleans) all.add_tensor(DType::boolean);
        return all.tensors.value_or(DType::f32);
    }
};

}  // namespace lunaria
