// Files that MindSpore wrote, in terms of our operators.
#pragma once

#include "core/ir/mindir.h"
#include "core/ir/mindir_model.h"

namespace lunaria::mindir {

// Control flow needs the primitives of a language.
ir::ParsedGraph import_model(const Model& model, const ir::Vocabulary& vocabulary, const std::string& file);
// The value of an attribute; nothing where it has none that we know.
std::optional<Value> value_of(const Attribute& attribute);

}  // namespace lunaria::mindir
