// Inputs of a program from the command line, and results as texts and files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jit/runtime/program.h"

namespace lunaria::runtime {

// The input that a word of the command line stands for: a file or a literal. `wanted`: what the program takes there.
// Throws Error that names the word.
Value input_of(const std::string& word, const ir::NodeType& wanted);

// Writes each result to a file of its own; gives their paths. Tables are written field by field.
std::vector<std::string> write_results(std::span<const Value> results, const std::string& out);

std::string describe(const Signature& signature);

}  // namespace lunaria::runtime
