// The table of SentencePiece models that says what characters are changed into: a double array (Aoe 1989) over the
// bytes of what is replaced, and the texts that replace it.
#pragma once

#include "core/data/text/tokenizer/parts.h"

namespace lunaria::text {

// `table`: in base64. Throws value_error where it is damaged.
Normalizer precompiled(std::string_view table);

}  // namespace lunaria::text
