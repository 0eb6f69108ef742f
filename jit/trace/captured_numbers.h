// Variables in which the closures of one text hold different numbers, as `n` in
//     for n = 1, 1000 do local f = ms.jit(function(x) return x * n end) ... end
// Such a number is left open when a closure is recorded first, so that its kernels are those of the other closures.
#pragma once

#include <array>

#include "core/tensor/value.h"

namespace lunaria::trace {

class CapturedNumbers {
  public:
    // Whether closures of the text, known by an address of its own, have held another number than this there. A text
    // that makes room for another one is as one that was never met.
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
