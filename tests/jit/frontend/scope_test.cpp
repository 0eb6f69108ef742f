#include "jit/frontend/scope.h"

#include <gtest/gtest.h>

#include <vector>

#include "jit/frontend/parser.h"
#include "jit/frontend/printer.h"

namespace lunaria::lua {
namespace {

std::string tree(const std::string& text) { return dump(*parse(text, "test")); }
std::string failure(const std::string& text) {
    try {
        parse(text, "test");
    } catch (const SyntaxError& error) {
        EXPECT_FALSE(error.incomplete()) << text;
        return error.headline();
    }
    return "none";
}
std::string repeat(const std::string& text, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += text;
    return out;
}
// The names of locals whose value may change behind a closure's back.
std::string shared_locals(const std::string& text) {
    const std::string dumped = tree(text);
    std::string names;
    for (const char name : {'a', 'b', 'c', 'i'})
        if (dumped.find(str(name, "@")) != std::string::npos && dumped.find("!") != std::string::npos) {
            for (std::size_t at = dumped.find(str(name, "@")); at != std::string::npos;
                 at = dumped.find(str(name, "@"), at + 1)) {
                const std::size_t end = dumped.find_first_not_of("0123456789", at + 2);
                if (end != std::string::npos && dumped[end] == '!') {
                    names += name;
                    break;
                }
            }
        }
    return names;
}

TEST(Scope, ShowsALocalAfterItsValueAndHidesItAfterItsBlock) {
    EXPECT_EQ(tree("local x = x; local x = x; do local x end return x"),
              "(local x@1 = :x) (local x@2 = x@1) (do (local x@3)) (return x@2)");
    EXPECT_EQ(tree("local function f() end local f = f"), "(local-function f@1 (function () [])) (local f@2 = f@1)");
    EXPECT_EQ(tree("for i = 1, 2 do end return i"), "(for i@1 1 2 -) (return :i)");
    EXPECT_EQ(tree("local a, a = 1, 2; return a"), "(local a@1 a@2 = 1 2) (return a@2)");
}

TEST(Scope, ListsUpvaluesInOrderOfFirstUseThroughAllFunctions) {
    EXPECT_EQ(tree("local a, b, c\nfunction f() return b, function() return a, b, x end end"),
              "(local a@1 b@2 c@3) (define :f (function () [b a _ENV] "
              "(return ^b@0 (function () [a b _ENV] (return ^a@0 ^b@1 :x)))))");
    const auto chunk = parse("local a\nlocal function f() return function() return a end end", "test");
    const Upvalue inner = chunk->functions()[2]->upvalues[0], outer = chunk->functions()[1]->upvalues[0];
    EXPECT_TRUE(outer.from_parent_local);
    EXPECT_FALSE(inner.from_parent_local);
    EXPECT_EQ(inner.parent_index, 0u);
    EXPECT_EQ(inner.local, outer.local);
    EXPECT_TRUE(inner.local->captured);
    EXPECT_EQ(chunk->main().upvalues.size(), 1u);
    EXPECT_EQ(chunk->main().upvalues[0].local, &chunk->environment());
}

TEST(Scope, ResolvesGlobalsThroughWhateverEnvIsVisible) {
    EXPECT_EQ(tree("local _ENV = {}; x = 1"), "(local _ENV@1 = (table)) (set _ENV@1:x = 1)");
    EXPECT_EQ(tree("local _ENV; function f() return x end"),
              "(local _ENV@1) (define _ENV@1:f (function () [_ENV] (return ^_ENV@0:x)))");
    EXPECT_EQ(tree("return _ENV.x"), "(return (. ^_ENV@0 \"x\"))");
}

TEST(Scope, FoldsConstantsAsStockLuaDoesAndNeverCapturesThem) {
    std::vector<decltype(parse("", ""))> chunks;  // they own the text of string constants
    const auto constant = [&](const std::string& value) {
        const auto& chunk =
            chunks.emplace_back(parse("local c <const> = " + value + "\nreturn function() return c end", "test"));
        const bool captured = !chunk->functions()[1]->upvalues.empty();
        const auto& declared = *chunk->main().body->statements[0]->as<LocalDecl>().locals[0];
        EXPECT_EQ(captured, !declared.constant.has_value()) << value;
        return declared.constant;
    };
    EXPECT_EQ(constant("5"), Constant(std::int64_t{5}));
    EXPECT_EQ(constant("nil"), Constant(nullptr));
    EXPECT_EQ(constant("'s'"), Constant(std::string_view("s")));
    EXPECT_EQ(constant("-(2 + 3) * 2"), Constant(std::int64_t{-10}));
    EXPECT_EQ(constant("7 // -2"), Constant(std::int64_t{-4}));
    EXPECT_EQ(constant("7 % -3"), Constant(std::int64_t{-2}));
    EXPECT_EQ(constant("-7 // 2.0"), Constant(-4.0));
    EXPECT_EQ(constant("-7 % 4.0"), Constant(1.0));
    EXPECT_EQ(constant("7 / 2"), Constant(3.5));
    EXPECT_EQ(constant("2 ^ 10"), Constant(1024.0));
    EXPECT_EQ(constant("0x7fffffffffffffff + 1"), Constant(std::numeric_limits<std::int64_t>::min()));
    EXPECT_EQ(constant("1 << 63 >> 63"), Constant(std::int64_t{1}));
    EXPECT_EQ(constant("1 << 64"), Constant(std::int64_t{0}));
    EXPECT_EQ(constant("3.0 | 4"), Constant(std::int64_t{7}));
    EXPECT_EQ(constant("~0 ~ 5 & 3"), Constant(std::int64_t{-2}));
    EXPECT_EQ(constant("not nil"), Constant(true));
    EXPECT_EQ(constant("not 0"), Constant(false));
    EXPECT_EQ(constant("true and 5"), Constant(std::int64_t{5}));
    EXPECT_EQ(constant("nil or 'x'"), Constant(std::string_view("x")));
    for (const char* none : {"0.0", "-0.0", "1 // 0", "1 / 0", "0 / 0.0", "3.5 | 1", "'a' .. 'b'", "#'a'", "nil and 1",
                             "1 or 2", "1 < 2", "f()", "1 % 0", "x", "{}", "'1' + 1", "-'1'", "~1.5"})
        if (std::string_view(none) != "0.0") {
            EXPECT_EQ(constant(none), std::nullopt) << none;
        }
    EXPECT_EQ(constant("0.0"), Constant(0.0));  // a literal is not folded, so its zero stays
    EXPECT_EQ(tree("local a <const> = 1; local b <const> = a + 1; return b"),
              "(local a@1<const> = 1) (local b@2<const> = (+ =a@1 1)) (return =b@2)");
    EXPECT_EQ(tree("local a <const>, b = 1, 2; return a"), "(local a@1<const> b@2 = 1 2) (return a@1)");
}

TEST(Scope, KnowsWhichCapturedLocalsChange) {
    EXPECT_EQ(shared_locals("local a = 1; a = 2; f(function() return a end)"), "");
    EXPECT_EQ(shared_locals("local a = 1; f(function() return a end); a = 2"), "a");
    EXPECT_EQ(shared_locals("local a = 1; f(function() a = 2 end)"), "a");
    EXPECT_EQ(shared_locals("local a; while x do a = 1; f(function() return a end) end"), "a");
    EXPECT_EQ(shared_locals("while x do local a; a = 1; f(function() return a end) end"), "");
    EXPECT_EQ(shared_locals("while x do local a; while y do a = 1 f(function() return a end) end end"), "a");
    EXPECT_EQ(shared_locals("local a; while x do a = 1 end; f(function() return a end)"), "");
    EXPECT_EQ(shared_locals("local a; while x do a = 1 end; while x do f(function() return a end) end"), "");
    EXPECT_EQ(shared_locals("local a; ::top:: a = 1; f(function() return a end) goto top"), "a");
    EXPECT_EQ(shared_locals("local a; while f(function() return a end) do a = 1 end"), "a");
    EXPECT_EQ(shared_locals("for i = 1, 2 do f(function() return i end) end"), "");
    EXPECT_EQ(shared_locals("local function a() return a end"), "");
    EXPECT_EQ(shared_locals("local a, b; function a() end; function b() return b end"), "b");
    EXPECT_EQ(shared_locals("local a; a = function() return a end"), "a");
}

TEST(Scope, RefusesToAssignConstants) {
    EXPECT_EQ(failure("local x <const> = 1; x = 2"), "attempt to assign to const variable 'x'");
    EXPECT_EQ(failure("local x <const> = f(); x = 2"), "attempt to assign to const variable 'x'");
    EXPECT_EQ(failure("local x <close> = nil; y, x = 2"), "attempt to assign to const variable 'x'");
    EXPECT_EQ(failure("local x <const> = 1; function f() x = 2 end"), "attempt to assign to const variable 'x'");
    EXPECT_EQ(failure("local x <const> = {}; function f() x = 2 end"), "attempt to assign to const variable 'x'");
    EXPECT_EQ(failure("local x <const> = 1; function x() end"), "attempt to assign to const variable 'x'");
    EXPECT_EQ(failure("local x <const> = {}; function x.y() end x.y = 1"), "none");
    EXPECT_EQ(failure("local x <const> = {}; x[1] = 1 local x = 1; x = 2"), "none");
    EXPECT_EQ(failure("local a <close>, b <close> = f()"), "multiple to-be-closed variables in local list near 'b'");
    EXPECT_EQ(failure("local a <closed> = f()"), "unknown attribute 'closed' near 'closed'");
}

TEST(Scope, ChecksGotosAndLabels) {
    EXPECT_EQ(failure("goto x"), "no visible label 'x' for goto at line 1");
    EXPECT_EQ(failure("do ::x:: end\ngoto x"), "no visible label 'x' for goto at line 2");
    EXPECT_EQ(failure("::x:: function f() goto x end"), "no visible label 'x' for goto at line 1");
    EXPECT_EQ(failure("goto x; local a; ::x:: f()"), "<goto x> at line 1 jumps into the scope of local 'a'");
    EXPECT_EQ(failure("goto x; local a; ::x::"), "none");
    EXPECT_EQ(failure("goto x; local a; ::x:: ; ::y::"), "none");
    EXPECT_EQ(failure("do goto x; local a; ::x:: ; end"), "none");
    EXPECT_EQ(failure("repeat goto x; local a; ::x:: until a"), "<goto x> at line 1 jumps into the scope of local 'a'");
    EXPECT_EQ(failure("do goto x end; local a; ::x:: f()"), "<goto x> at line 1 jumps into the scope of local 'a'");
    EXPECT_EQ(failure("do local b goto x end ::x:: local a; f()"), "none");
    EXPECT_EQ(failure("::x::\n::x::"), "label 'x' already defined on line 1");
    EXPECT_EQ(failure("::x:: do ::x:: end"), "label 'x' already defined on line 1");
    EXPECT_EQ(failure("do ::x:: end ::x:: function f() ::x:: end"), "none");
    EXPECT_EQ(failure("break"), "break outside a loop at line 1 near 'break'");
    EXPECT_EQ(failure("while x do function f() break end end"), "break outside a loop at line 1 near 'break'");
    EXPECT_EQ(failure("while x do if y then break end end for i = 1, 2 do break end repeat break until x"), "none");
    const auto chunk = parse("for i = 1, 3 do if i then goto continue end f(i) ::continue:: end", "test");
    const auto& loop = chunk->main().body->statements[0]->as<NumericFor>();
    const auto& jump = loop.body->statements[0]->as<If>().clauses[0].body->statements[0]->as<Goto>();
    EXPECT_EQ(jump.target, loop.body->statements[2]);
    EXPECT_TRUE(jump.target->ends_block);
}

TEST(Scope, HasStockLuasLimits) {
    EXPECT_EQ(failure(repeat("local a ", 200)), "none");
    EXPECT_EQ(failure(repeat("local a ", 201)), "too many local variables (limit is 200) in main function");
    EXPECT_EQ(failure("\nfunction f() " + repeat("local a ", 201) + " end"),
              "too many local variables (limit is 200) in function at line 2");
    EXPECT_EQ(failure(repeat("local a ", 196) + "for i = 1, 2 do end"), "none");
    EXPECT_EQ(failure(repeat("local a ", 197) + "for i = 1, 2 do end"),
              "too many local variables (limit is 200) in main function");
    EXPECT_EQ(failure(repeat("do local a end ", 300)), "none");
    EXPECT_EQ(failure(repeat("goto a ", 32767) + "::a::"), "none");
    EXPECT_EQ(failure(repeat("goto a ", 32768) + "::a::"), "too many labels/gotos (limit is 32767)");
    const auto upvalues = [](int count) {
        std::string text = "local function outer()\n", uses;
        int declared = 0;
        for (const char* level : {"a", "b"}) {
            for (int i = 0; i < 150 && declared < count; ++i, ++declared) {
                text += str("local ", level, i, "\n");
                uses += str(level, i, "() ");
            }
            text += "return function()\n";
        }
        return text + uses + "end end end";
    };
    EXPECT_EQ(failure(upvalues(255)), "none");
    EXPECT_TRUE(failure(upvalues(256)).starts_with("too many upvalues (limit is 255) in function at line"));
}

}  // namespace
}  // namespace lunaria::lua
