// Files that MindSpore wrote, in terms of our operators.
#pragma once

#include "core/ir/mindir.h"
#include "core/ir/mindir_model.h"

namespace lunaria::mindir {

ir::ParsedGraph import_model(const Model& model, const std::string& file);
// The value of an attribute; nothing where it has none that we know.
std::optional<Value> value_of(const Attribute& attribute);

}  // namespace lunaria::mindir
