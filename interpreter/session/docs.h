// The reference of all operators as Markdown, written from the registry.
#pragma once

#include <string>

#include "core/op.h"

namespace lunaria {

// One operator's section: signature, description, example, gradient.
std::string operator_markdown(const Op& op);

// Writes one file per family and README.md as their index into the folder, which is made if needed. Throws file_error.
void write_docs(const std::string& folder);

}  // namespace lunaria
