#include "core/federated/vertical/party_message.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/io/protobuf.h"

namespace lunaria::federated {
namespace {

TEST(PartyMessage, ComesBackAsItWas) {
    PartyMessage m{"kind", {}};
    m.values.emplace_back("integer", int64_t{-7});
    m.values.emplace_back("number", -0.0);
    m.values.emplace_back("text", std::string("a\0b", 3));
    m.values.emplace_back("x", Tensor::from<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}));
    m.values.emplace_back("none", Tensor::empty(DType::i64, {0, 5}));
    m.values.emplace_back("single", Tensor::scalar(int64_t{9}));
    const PartyMessage got = read_party_message(text_of(m), "test");
    EXPECT_EQ(got.kind, "kind");
    ASSERT_EQ(got.values.size(), m.values.size());
    EXPECT_EQ(std::get<int64_t>(*got.find("integer")), -7);
    EXPECT_TRUE(std::signbit(std::get<double>(*got.find("number"))));
    EXPECT_EQ(std::get<std::string>(*got.find("text")), std::string("a\0b", 3));
    const auto& x = std::get<Tensor>(*got.find("x"));
    EXPECT_EQ(x.shape(), (Shape{2, 3}));
    EXPECT_EQ(x.data<float>()[5], 6);
    EXPECT_EQ(std::get<Tensor>(*got.find("none")).shape(), (Shape{0, 5}));
    EXPECT_EQ(std::get<Tensor>(*got.find("single")).rank(), 0);
    EXPECT_EQ(got.find("other"), nullptr);
}

std::string problem_of(const std::string& bytes) {
    try {
        read_party_message(bytes, "a message of 'b'");
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(PartyMessage, OtherBytesAreErrorsThatNameTheSender) {
    const auto of = [](const ProtoWriter& value) {
        ProtoWriter w;
        w.integer(1, 1).bytes(2, "kind").message(3, value);
        return w.text();
    };
    EXPECT_NE(problem_of("").find("a message of 'b'"), std::string::npos);
    EXPECT_NE(problem_of(ProtoWriter().integer(1, 2).bytes(2, "kind").text()).find("format 2"), std::string::npos);
    EXPECT_NE(problem_of(ProtoWriter().integer(1, 1).text()).find("no kind"), std::string::npos);
    EXPECT_NE(problem_of(of(ProtoWriter().bytes(1, "x").integer(2, 9))).find("unknown kind"), std::string::npos);
    EXPECT_NE(problem_of(of(ProtoWriter().integer(2, 1))).find("no name"), std::string::npos);
    // A tensor of 2^62 elements in four bytes, one of a negative size, one of no type.
    ProtoWriter huge, negative, untyped;
    huge.bytes(1, "x")
        .integer(2, 4)
        .integer(6, 1)
        .integer(7, int64_t{1} << 31)
        .integer(7, int64_t{1} << 31)
        .bytes(5, "abcd");
    negative.bytes(1, "x").integer(2, 4).integer(6, 1).integer(7, -1).bytes(5, "abcd");
    untyped.bytes(1, "x").integer(2, 4).integer(6, 99).integer(7, 1).bytes(5, "abcd");
    for (const ProtoWriter* w : {&huge, &negative, &untyped}) EXPECT_NE(problem_of(of(*w)), "");
    ProtoWriter twice;
    twice.integer(1, 1).bytes(2, "kind");
    for (int i = 0; i < 2; ++i) twice.message(3, ProtoWriter().bytes(1, "x").integer(2, 1).integer(3, 4));
    EXPECT_NE(problem_of(twice.text()).find("'x' twice"), std::string::npos);
    // Every shorter beginning of a sound message is an error or a message with less in it.
    PartyMessage m{"kind", {}};
    m.values.emplace_back("x", Tensor::from<float>(std::vector<float>{1, 2}, {2}));
    const std::string whole = text_of(m);
    for (size_t n = 0; n < whole.size(); ++n) problem_of(whole.substr(0, n));
}

}  // namespace
}  // namespace lunaria::federated
