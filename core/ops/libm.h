// Functions of the C library for single numbers: what formulas ask lane by lane where no polynomial of their own
// serves.
#pragma once

#include <cmath>
#include <span>
#include <string_view>

namespace lunaria::libm {

// log |gamma(x)|; the C library's function also writes the sign to a place of its own.
double lgamma(double x);

// A function by the name that generated code calls it by.
struct Function {
    std::string_view name;
    const void* address;
};
// All that formulas ask for.
std::span<const Function> functions();

}  // namespace lunaria::libm
