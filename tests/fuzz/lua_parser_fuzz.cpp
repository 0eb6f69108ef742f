// Any bytes: the parser accepts them or throws SyntaxError, and what it accepts prints to text with the same tree. The
// helpers for half-typed text take the same bytes.
// Source: jit/frontend/dump.cpp
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "jit/frontend/cursor.h"
#include "jit/frontend/interactive.h"
#include "jit/frontend/printer.h"

namespace {

void check_round_trip(const std::string& text) {
    using namespace lunaria::lua;
    std::string printed, tree;
    try {
        const auto chunk = parse(text, "fuzz");
        printed = print(*chunk);
        tree = dump(*chunk);
    } catch (const SyntaxError&) {
        return;
    }
    std::string again;
    try {
        again = dump(*parse(printed, "printed"));
    } catch (const SyntaxError& error) {
        again = error.what();
    }
    if (again == tree) return;
    std::fprintf(stderr, "%s\n---\n%s\n---\n%s\n", printed.c_str(), tree.c_str(), again.c_str());
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    check_round_trip(text);
    lunaria::lua::input_state(text);
    const std::size_t cursor = size == 0 ? 0 : data[0] * size / 255;
    const auto context = lunaria::lua::cursor_context(text, cursor);
    if (context.word_begin > cursor) std::abort();
    return 0;
}
