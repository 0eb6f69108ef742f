// The graphs of Lua functions and of their derivatives have a text form that reads back to the same text, and a
// MindIR file likewise, and keep the
// rules of graphs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/ir/mindir.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "jit/autodiff/transform.h"
#include "jit/frontend/parser.h"
#include "jit/language.h"
#include "jit/lower/lower.h"
#include "jit/vm/machine.h"
#include "tests/jit/frontend/stock_lua_corpus.h"
#include "tests/today.h"

namespace lunaria {
namespace {

const ir::Vocabulary kVocabulary{&lua::language(), vm::operator_value};

void expect_round_trip(const ir::Graph& graph, const std::string& where) {
    const std::string text = ir::print(graph);
    try {
        ir::verify(graph);
        ir::ParsedGraph parsed = ir::parse(text, kVocabulary);
        ASSERT_EQ(ir::print(*parsed.graph), text) << where;
        ir::verify(*parsed.graph);
        const std::string file = ir::mindir_of(graph);
        ir::ParsedGraph read = ir::read_mindir(*memory_source("m", file), kVocabulary);
        ASSERT_EQ(ir::print(*read.graph), text) << where;
    } catch (const Error& e) {
        FAIL() << where << ": " << e.what() << '\n' << text;
    }
}

// The graph and those of the functions that its blocks make closures of.
void functions_of(const ir::Graph& graph, std::set<const ir::Graph*>& found) {
    if (!found.insert(&graph).second) return;
    auto blocks = [&](const auto& self, const ir::Graph& block) -> void {
        for (const ir::Node* node : block.body())
            if (node->op && node->op->name() == "closure") functions_of(*node->args[0].node()->function, found);
        for (auto& inner : block.inner()) self(self, *inner);
    };
    blocks(blocks, graph);
}

int check_text(const std::string& text, const std::string& name) {
    std::unique_ptr<lua::Chunk> chunk;
    std::unique_ptr<ir::Graph> main;
    try {
        chunk = lua::parse(text, name);
        main = lower::lower(*chunk, chunk->main());
    } catch (const Error&) {
        return 0;  // not Lua, or left to the interpreter
    }
    expect_round_trip(*main, name);
    std::set<const ir::Graph*> functions;
    functions_of(*main, functions);
    for (const ir::Graph* f : functions) {
        auto first = autodiff::differentiate(*f);
        expect_round_trip(*first, name + ": J of " + f->name);
        if (first->nodes().size() > 400) continue;  // the second derivative of a long function is huge
        auto second = autodiff::differentiate(*first);
        expect_round_trip(*second, name + ": J of J of " + f->name);
    }
    return static_cast<int>(functions.size());
}

TEST(IrText, of_short_programs_reads_back) {
    int count = 0;
    for (std::string_view text : lua::kCorpus) count += check_text(std::string(text), "corpus");
    EXPECT_GT(count, 100);
}

// A fourteenth of the files a day: all of them take minutes.
TEST(IrText, of_the_library_reads_back) {
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator("interpreter/lua"))
        if (entry.path().extension() == ".lua") files.insert(entry.path());
    int count = 0;
    size_t at = 0;
    for (const std::filesystem::path& path : files) {
        if (!testing::is_of_today(at++, 14)) continue;
        std::ifstream file(path);
        count += check_text({std::istreambuf_iterator<char>(file), {}}, path.string());
    }
    EXPECT_GT(count, testing::is_whole() ? 1000 : 80);
}

TEST(IrText, of_strings_numbers_and_blocks_reads_back) {
    EXPECT_GT(check_text("local t = {['a\\n\"\\0b'] = 1e300, 0.1, -0.0, 1/0, math.mininteger, 0x7fffffffffffffff}\n"
                         "local function f(x, ...)\n"
                         "  local g = function() return x end\n"
                         "  for i = 1, 3 do x = x * i if x > 2 then goto done end end\n"
                         "  ::done::\n"
                         "  while x do x = x - 1 repeat x = t[x] until not x end\n"
                         "  return f(x), select('#', ...)\n"
                         "end\n"
                         "local f = function() end\n"
                         "function t.a.b:c() return self end\n"
                         "return f, 'tail --  : ? }', [[\ngraph f() {\n]]",
                         "=\"odd: name\n"),
              3);
}

TEST(IrText, operators_as_values_have_their_name) {
    ir::Graph f("f");
    f.result = vm::operator_value(registry().get("relu"));
    EXPECT_EQ(ir::print(f), "graph f() {\n  return ops.relu\n}\n");
    EXPECT_EQ(ir::print(*ir::parse(ir::print(f), kVocabulary).graph), ir::print(f));
}

}  // namespace
}  // namespace lunaria
