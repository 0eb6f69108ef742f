// Captured variables in which the closures of one text hold different numbers, such as `n` in
//     for n = 1, 1000 do local f = ms.jit(function(x) return x * n end) ... end
// Such a number is symbolic in the record of a closure, so that all closures share its kernels.
#pragma once

#include <array>

#include "core/tensor/value.h"

namespace lunaria::trace {

class CapturedNumbers {
  public:
    // Whether closures of the text, which is known by an address of its own, have held another number there before. A
    // text that was dropped to make room for another counts as never met.
    bool differ(const void* text, int position, const Value& number);

  private:
    struct Entry {
        const void* text = nullptr;
        int position = 0;
        bool differs = false, is_integer = false;
        double number = 0;
        int64_t integer = 0;
    };
    std::array<Entry, 1024> entries_{};
};

}  // namespace lunaria::trace
