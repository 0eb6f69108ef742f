// Import of files that MindSpore wrote, as graphs of our operators.
#pragma once

#include "core/ir/mindir.h"
#include "core/ir/mindir_model.h"

namespace lunaria::mindir {

// `primitives`: those of a language; files with control flow need them.
ir::ParsedGraph import_model(const Model& model, const ir::Vocabulary& vocabulary, const std::string& file);
// The value of an attribute; nothing where its form is unknown to us.
std::optional<Value> value_of(const Attribute& attribute);

}  // namespace lunaria::mindir
