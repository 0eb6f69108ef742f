// Distances between names, for "did you mean".
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lunaria {

// The number of letters to change, to add, to leave out, or to swap with their neighbours, that make a name another
// one.
size_t edit_distance(std::string_view a, std::string_view b);

// Whether a name is near enough to be meant by another one; names that are very long never are.
bool is_near(std::string_view name, size_t distance);

// "did you mean 'x'?" for the nearest of the names, the last of several; empty where none is near.
std::string nearest(std::string_view name, std::span<const std::string_view> names);

}  // namespace lunaria
