#include "jit/frontend/printer.h"

#include <gtest/gtest.h>

#include <random>

#include "jit/frontend/parser.h"

namespace lunaria::lua {
namespace {

std::string printed(const std::string& text) { return print(*parse(text, "test")); }

TEST(Printer, WritesOneStatementALine) {
    EXPECT_EQ(printed("local a<const>,b=1,'x' if a then f{1;x=2,[3]=4} elseif b then else return end"),
              "local a <const>, b = 1, \"x\"\n"
              "if a then\n"
              "  f({1, x = 2, [3] = 4})\n"
              "elseif b then\n"
              "else\n"
              "  return\n"
              "end\n");
    EXPECT_EQ(printed(""), "");
}

TEST(Printer, KeepsApartWhatWouldJoin) {
    EXPECT_EQ(printed("x = - -y"), "x = - -y\n");
    EXPECT_EQ(printed("x = not not y"), "x = not not y\n");
    EXPECT_EQ(printed("x = 1 ..2"), "x = 1 .. 2\n");
    EXPECT_EQ(printed("x = y;(f)()"), "x = y;\n(f)()\n");
    EXPECT_EQ(printed("f();(g).x = 1"), "f();\n(g).x = 1\n");
    EXPECT_EQ(printed("(f)()"), "(f)()\n");
    EXPECT_EQ(printed("x = t[ [[a]] ]"), "x = t[\"a\"]\n");
    EXPECT_EQ(printed("x = 1e999, 0x7fffffffffffffff + 1, 1e15, 2^53"),
              "x = 1e999, 9223372036854775807 + 1, 1e+15, 2 ^ 53\n");
    EXPECT_EQ(printed("function a.b:c(...) end"), "function a.b:c(...)\nend\n");
    EXPECT_EQ(printed("goto a ::a:: ::b::"), "goto a\n::a::\n::b::\n");
}

// Writes random programs that are valid by construction.
class Writer {
  public:
    explicit Writer(unsigned seed) : random_(seed) {}

    std::string program() {
        std::string out;
        for (int i = 0; i < 12; ++i) out += statement(3) + pick({"\n", " ; ", ";;", " --c\n", "\n--[[ c ]] "});
        return out;
    }

  private:
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    std::string pick(std::initializer_list<const char*> items) {
        return *(items.begin() + below(static_cast<int>(items.size())));
    }
    std::string name() { return pick({"a", "b", "c", "x", "_ENV", "self", "long_name", "Const"}); }
    std::string variable() { return pick({"a", "b", "c", "x", "_ENV", "self", "long_name"}); }

    std::string list(int depth) {
        std::string out = expression(depth);
        for (int i = below(3); i > 0; --i) out += ", " + expression(depth);
        return out;
    }
    std::string prefix(int depth) {
        if (depth <= 0) return name();
        switch (below(6)) {
            case 0:
                return prefix(depth - 1) + "." + name();
            case 1:
                return prefix(depth - 1) + "[ " + expression(depth - 1) + "]";
            case 2:
                return prefix(depth - 1) + pick({"()", "{}", "'s'", "[[t]]"});
            case 3:
                return prefix(depth - 1) + ":m(" + list(depth - 1) + ")";
            case 4:
                return "(" + expression(depth - 1) + ")";
            default:
                return name();
        }
    }
    std::string expression(int depth) {
        if (depth <= 0)
            return pick(
                {"nil", "true", "false", "1", "0x1F", "2.5", "3e-7", "0x.1p4", "'a\\n\\0\\\"'", "[==[]]]==]", "..."});
        switch (below(6)) {
            case 0:
                return expression(depth - 1) +
                       pick({" + ",  " - ", "*",    " / ", " // ", " % ", " ^ ",  " .. ", " == ",  " ~= ", " < ",
                             " <= ", " > ", " >= ", " & ", " | ",  " ~ ", " << ", " >> ", " and ", " or "}) +
                       expression(depth - 1);
            case 1:
                return pick({"- ", "not ", "#", "~"}) + expression(depth - 1);
            case 2:
                return "function(" + pick({"", "x", "a, b"}) + ") " + plain_block(depth - 1) + " end";
            case 3:
                return "{" + expression(depth - 1) + pick({", ", "; "}) + name() + " = " + expression(depth - 1) +
                       ", [ " + expression(depth - 1) + "] = " + expression(depth - 1) + pick({"", ",", ";"}) + "}";
            default:
                return prefix(depth);
        }
    }
    // Without '...', which belongs to the function around.
    std::string plain_block(int depth) {
        std::string text = block(depth);
        for (std::size_t at = 0; (at = text.find("...", at)) != std::string::npos; ++at)
            if (at < 3 || text.compare(at - 3, 3, "p, ") != 0) text.replace(at, 3, "nil");
        return text;
    }
    std::string block(int depth) {
        std::string out;
        for (int i = below(3); i > 0; --i) out += statement(depth) + ";";
        if (below(4) == 0) out += " return " + (below(2) ? expression(depth - 1) : std::string());
        return out;
    }
    std::string statement(int depth) {
        if (depth <= 0) return variable() + " = " + expression(0);
        switch (below(11)) {
            case 0:
                return "local " + (below(2) ? variable() : pick({"Const <const>", "Const <close>"})) + " = " +
                       expression(depth - 1) + "; local y";
            case 1:
                return "y, z" + pick({".a", "[1]", ""}) + " = " + list(depth - 1);
            case 2:
                return "do " + block(depth - 1) + " end";
            case 3:
                return "while " + expression(depth - 1) + " do " + block(depth - 1) + " end";
            case 4:
                return "repeat " + block(depth - 1) + " until " + expression(depth - 1);
            case 5:
                return "if " + expression(depth - 1) + " then " + block(depth - 1) + " elseif z then " +
                       block(depth - 1) + " else " + block(depth - 1) + " end";
            case 6:
                return "for i = " + expression(depth - 1) + ", " + expression(depth - 1) + pick({"", ", 2"}) +
                       " do goto e; " + "do " + block(depth - 1) + " end ::e:: end";
            case 7:
                return "for k, v in " + list(depth - 1) + " do " + block(depth - 1) + " end";
            case 8:
                return "function y.f" + pick({"", ".g", ":h"}) + "(" + pick({"", "p", "p, q"}) + ") " +
                       plain_block(depth - 1) + " end";
            case 9:
                return "local function f(p, ...) " + block(depth - 1) + " end";
            default:
                return ";(" + expression(depth - 1) + ")" + pick({"()", ".x()", ":m{}", "[1]'s'"});
        }
    }

    std::mt19937 random_;
};

TEST(Printer, PrintsTextThatParsesToTheSameTree) {
    for (unsigned seed = 0; seed < 600; ++seed) {
        const std::string text = Writer(seed).program();
        const auto chunk = parse(text, "random");
        const std::string again = print(*chunk);
        const auto second = parse(again, "printed");
        EXPECT_EQ(dump(*chunk), dump(*second)) << text << "\n---\n" << again;
        EXPECT_EQ(again, print(*second));
    }
}

}  // namespace
}  // namespace lunaria::lua
