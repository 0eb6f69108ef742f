// Any text is a graph that prints as a text that reads back to the same text, or an Error.
// Source: core/ops/*.cpp
// Source: core/batching/*.cpp
// Source: jit/autodiff/*.cpp
#include <cstdlib>

#include "core/base/error.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "jit/language.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria;
    ir::Vocabulary vocabulary;
    vocabulary.primitives = &lua::language();
    const ir::PrintOptions whole{.most_elements = int64_t{1} << 40};
    try {
        const auto parsed = ir::parse({reinterpret_cast<const char*>(data), size}, vocabulary);
        const std::string text = ir::print(*parsed.graph, whole);
        if (ir::print(*ir::parse(text, vocabulary).graph, whole) != text) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
