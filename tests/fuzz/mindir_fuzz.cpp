// Any bytes are a valid graph or an Error; a graph can be printed and saved.
// Source: core/ops/*.cpp
// Source: core/batching/*.cpp
#include "core/base/error.h"
#include "core/ir/mindir.h"
#include "core/ir/printer.h"
#include "jit/language.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    lunaria::ir::Vocabulary vocabulary;
    vocabulary.primitives = &lunaria::lua::language();
    vocabulary.function = [](const std::string& name) { return lunaria::Value(name); };
    try {
        auto parsed = lunaria::ir::read_mindir(*lunaria::memory_source("fuzz", bytes), vocabulary);
        lunaria::ir::print(*parsed.graph);
        lunaria::ir::mindir_of(*parsed.graph);
    } catch (const lunaria::Error&) {
    }
    return 0;
}
