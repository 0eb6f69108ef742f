#include "core/operator/signature.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria {
namespace {

TEST(Signature, reads_names_types_defaults_and_results) {
    Signature s = parse_signature(
        "topk(x/input: same, k: int, dim/axis: int? = nil, largest: bool = true, *, mode: \"a\"|\"b\" = \"a\") -> "
        "(values, indices)");
    EXPECT_EQ(s.name, "topk");
    ASSERT_EQ(s.params.size(), 5u);
    EXPECT_EQ(s.find("input"), 0);
    EXPECT_EQ(s.find("axis"), 2);
    EXPECT_EQ(s.find("nothing"), -1);
    EXPECT_TRUE(s.params[2].optional);
    EXPECT_FALSE(s.params[1].has_default);
    EXPECT_TRUE(s.params[3].default_value.boolean());
    EXPECT_TRUE(s.params[4].by_name_only);
    EXPECT_EQ(s.params[4].choices, (std::vector<std::string_view>{"a", "b"}));
    EXPECT_EQ(s.results, (std::vector<std::string_view>{"values", "indices"}));
}

TEST(Signature, a_malformed_text_does_not_scan) {
    EXPECT_TRUE(detail::SignatureScan{"f()"}.whole());
    EXPECT_TRUE(detail::SignatureScan{"f(x: ints = {1, -2})"}.whole());
    for (const char* text :
         {"f", "f(", "f(x)", "f(x: floats)", "f(x: int =)", "f(x: int,)", "f(x: \"a)", "f() ->", "f() tail"})
        EXPECT_FALSE(detail::SignatureScan{text}.whole()) << text;
}

TEST(Literal, reads_what_signatures_and_samples_write) {
    std::string_view text = "{1, -2.5, \"a b\", true, nil, inf} rest";
    EXPECT_EQ(to_string(parse_literal(text)), "{1, -2.5, \"a b\", true, nil, inf}");
    EXPECT_EQ(text, " rest");
    std::string_view bad = "what?";
    EXPECT_THROW(parse_literal(bad), Error);
}

TEST(Registry, suggests_names_that_look_alike) {
    Registry r;
    r.add("softmax(x: float)").alias("soft_max");
    EXPECT_NE(r.find("soft_max"), nullptr);
    try {
        r.get("sofmax");
        FAIL();
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("did you mean softmax"), std::string::npos) << e.what();
    }
    EXPECT_THROW(r.add("softmax(x: float)"), Error);
}

}  // namespace
}  // namespace lunaria
