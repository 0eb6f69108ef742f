// The function behind the operators lay_out and lay_out_as, which the program sets when it first makes a mesh.
#pragma once

#include "core/tensor/tensor.h"

namespace lunaria {

// The tensor in the layout with a number (0: whole, in host memory), or in that of `other` where one is given.
using LayOut = Tensor (*)(const Tensor& t, int64_t layout, const Tensor* other);
void set_lay_out(LayOut function);

}  // namespace lunaria
