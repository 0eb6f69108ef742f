// The device "Shapes": its tensors have dtypes and shapes but no elements, so that networks of any size can be made,
// counted and planned for. Operators on it compute nothing while a ShapesScope lives, and are errors otherwise.
#pragma once

#include "core/tensor/device.h"

namespace lunaria {

// The only device of such tensors.
Device& shapes_device();
// Throws the state_error of a program that needs the elements.
[[noreturn]] void refuse_elements(std::string_view where);

// While it lives, new tensors of this thread are on that device.
class ShapesScope {
  public:
    ShapesScope();
    ~ShapesScope();
    ShapesScope(const ShapesScope&) = delete;
    ShapesScope& operator=(const ShapesScope&) = delete;

  private:
    Device* before_;
    bool open_before_;
};

}  // namespace lunaria
