// What must hold of a program from a file beside the rules of graphs (core/ir/verifier.h), so that the machine can run
// it whatever its operands are: the machine trusts what lowering makes.
#pragma once

#include "core/ir/parser.h"

namespace lunaria {

// Whether a file may have that primitive of the language.
bool is_saved_primitive(const Op& primitive);

// Throws state_error for a program that lowering would not have made. What the file says about types of values that
// no rule infers is forgotten.
void check_program(const ir::ParsedGraph& program);

}  // namespace lunaria
