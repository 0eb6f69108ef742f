#include "core/transforms/step.h"

namespace lunaria::transforms {
std::span<const Entry> text_entries() { return {}; }
}  // namespace lunaria::transforms
