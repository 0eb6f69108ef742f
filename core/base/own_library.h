// Parts of the program that are shared libraries of their own, opened when they are first needed: what they link would
// otherwise cost every start of the program.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria {

// The places at which a library of the program may be, the likeliest first: beside the program, in the folder above it,
// in lib/lunaria beside the program's folder; the same beside the library that this function is a part of.
std::vector<std::filesystem::path> own_library_paths(std::string_view name);

// The function that a library of the program defines; the library stays open. Null where there is none, with the
// reason.
void* own_library_function(std::string_view name, const char* symbol, std::string& problem);

}  // namespace lunaria
