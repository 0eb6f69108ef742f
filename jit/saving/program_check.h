// The rules for a program from a file beside those of graphs (core/ir/verifier.h). They make sure that the machine can
// run it whatever its operands are: the machine trusts the graphs of the lowering.
#pragma once

#include "core/ir/parser.h"

namespace lunaria {

// Whether a file may have that primitive of the language.
bool is_saved_primitive(const Op& primitive);

// Throws state_error for a program that the lowering would not have made. Types in the file that no rule infers are
// dropped.
void check_program(const ir::ParsedGraph& program);

}  // namespace lunaria
