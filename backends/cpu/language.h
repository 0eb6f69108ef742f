#pragma once

namespace lunaria::cpu {

class KernelTable;

// Weights in blocks, and attention to a cache.
void add_language_kernels(KernelTable& table);

}  // namespace lunaria::cpu
