#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "core/lite/format/arena.h"
#include "core/lite/format/check.h"
#include "core/lite/format/file.h"
#include "core/lite/format/head.h"
#include "core/lite/format/secret.h"
#include "core/lite/format/sizes.h"

namespace lunaria::lite {
namespace {

alignas(64) constexpr std::array<float, 12> kWeights{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
constexpr std::array<float, 12> kSameWeights = kWeights;

// y = relu(x w + 1) with x of [n, 3], in two steps: a product and a loop.
Model sample() {
    Model m;
    m.dimensions.push_back({"n", 2, 1, 100});
    m.formulas.push_back({{{Formula::Kind::dimension, 0}}});
    m.formulas.push_back({{{Formula::Kind::dimension, 0}, {Formula::Kind::constant, 4}, {Formula::Kind::multiply, 0}}});
    const Number n{2, 0};
    Value x{.name = "x", .home = Value::Home::input, .shape = {n, 3}};
    Value w{.name = "w", .home = Value::Home::constant, .shape = {3, 4}};
    w.data = reinterpret_cast<const std::byte*>(kWeights.data());
    w.bytes = sizeof kWeights;
    Value product{.shape = {n, 4}};
    Value y{.name = "y", .home = Value::Home::output, .shape = {n, 4}};
    Value again = w;
    again.name = "again";
    again.data = reinterpret_cast<const std::byte*>(kSameWeights.data());
    m.values = {x, w, product, y, again};
    m.inputs = {0};
    m.outputs = {3};
    Step matmul{.kind = "matmul", .operands = {{0}, {1}}, .results = {{2}}};
    matmul.attributes.push_back({"transposed", Attribute::Kind::integers, {0}});
    matmul.attributes.push_back({"scale", Attribute::Kind::numbers, {}, {0.5}});
    matmul.attributes.push_back({"note", Attribute::Kind::text, {}, {}, "text"});
    matmul.label = "matmul";
    matmul.source = "net.lua:3";
    m.steps.push_back(matmul);
    using I = graph::LoopInstruction;
    Loop loop;
    loop.program.operands = {{}, {.written = true}};
    loop.program.code = {{.kind = I::Kind::load},
                         {.kind = I::Kind::constant, .row = true, .number = 1},
                         {.kind = I::Kind::formula, .name = "add", .args = {0, 1}},
                         {.kind = I::Kind::formula, .name = "relu", .args = {2}},
                         {.kind = I::Kind::store, .index = 1, .args = {3}}};
    m.loops.push_back(loop);
    Step step{.kind = "loop", .operands = {{2}}, .results = {{3}}};
    step.loop = 0;
    step.sizes = {{8, 1}};
    m.steps.push_back(step);
    m.properties.push_back({"name", Attribute::Kind::text, {}, {}, "sample"});
    return m;
}

// The bytes of a file where a mapping would have them.
struct File {
    explicit File(std::string_view text) : memory(text.size() + 64) {
        const auto at = reinterpret_cast<uintptr_t>(memory.data()) % 64;
        bytes = std::span(memory).subspan((64 - at) % 64, text.size());
        std::memcpy(bytes.data(), text.data(), text.size());
    }
    std::vector<std::byte> memory;
    std::span<std::byte> bytes;
};

std::string written(const Model& model) {
    std::string text;
    const std::string fault = write_model(model, [&](std::span<const std::byte> bytes) {
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return true;
    });
    EXPECT_EQ(fault, "");
    return text;
}

TEST(LiteFormat, AModelIsReadAsItWasWritten) {
    const std::string text = written(sample());
    const File file(text);
    Model m;
    Fault fault;
    ASSERT_TRUE(read_model(file.bytes, m, fault)) << fault.message();
    EXPECT_EQ(m.values[1].name, "w");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(m.values[1].data) % 64, 0U);
    EXPECT_EQ(std::memcmp(m.values[1].data, kWeights.data(), sizeof kWeights), 0);
    EXPECT_EQ(m.values[1].data, m.values[4].data) << "equal constants are stored once";
    EXPECT_EQ(m.steps[0].attributes[1].numbers[0], 0.5);
    EXPECT_EQ(m.loops[0].program.text(), sample().loops[0].program.text());
    EXPECT_EQ(written(m), text);
}

TEST(LiteFormat, SizesFollowFromTheShapesOfInputs) {
    const Model m = sample();
    std::vector<int64_t> sizes;
    EXPECT_EQ(find_sizes(m, std::vector<std::vector<int64_t>>{{7, 3}}, sizes), "");
    EXPECT_EQ(sizes, (std::vector<int64_t>{7}));
    EXPECT_EQ(evaluate(m, m.steps[1].sizes[0], sizes), 28);
    EXPECT_EQ(check_sizes(m, sizes).text, "");
    EXPECT_NE(find_sizes(m, std::vector<std::vector<int64_t>>{{7, 4}}, sizes), "");
    EXPECT_NE(find_sizes(m, std::vector<std::vector<int64_t>>{{101, 3}}, sizes), "");
    Model huge = m;
    huge.dimensions[0].most = 0;
    EXPECT_NE(check_sizes(huge, std::vector<int64_t>{int64_t{1} << 60}).text, "");
}

TEST(LiteFormat, TemporariesShareTheArena) {
    Model m;
    m.values.resize(4);
    for (Value& v : m.values) v.shape = {16};
    for (uint32_t i = 0; i < 3; ++i) m.steps.push_back({.kind = "copy", .operands = {{i}}, .results = {{i + 1}}});
    const std::vector<uint64_t> sizes(4, 64);
    EXPECT_EQ(place_arena(m, sizes).bytes, 128U);
    m.values[2].shares = 1;
    const Placement shared = place_arena(m, sizes);
    EXPECT_EQ(shared.offsets[1], shared.offsets[2]);
}

TEST(LiteFormat, ChecksumsAreThoseOfZip) {
    EXPECT_EQ(crc32(std::as_bytes(std::span(std::string_view("123456789")))), 0xcbf43926u);
}

TEST(LiteFormat, EachWrongByteIsNoticed) {
    const std::string text = written(sample());
    for (size_t i = 0; i < text.size(); ++i) {
        File file(text);
        file.bytes[i] ^= std::byte{4};
        Model m;
        Fault fault;
        EXPECT_FALSE(read_model(file.bytes, m, fault)) << "byte " << i;
        EXPECT_LE(fault.offset, text.size());
    }
    for (size_t size = 0; size < text.size(); ++size) {
        const File file(std::string_view(text).substr(0, size));
        Model m;
        Fault fault;
        EXPECT_FALSE(read_model(file.bytes, m, fault)) << size << " bytes";
    }
}

// With right checksums, so that the content is what is checked.
TEST(LiteFormat, DamageBehindRightChecksumsIsSafe) {
    const std::string text = written(sample());
    std::minstd_rand random(1);
    int readable = 0;
    for (int round = 0; round < 4000; ++round) {
        File file(text);
        Head head;
        std::memcpy(&head, file.bytes.data(), sizeof head);
        for (int k = 0; k < 1 + round % 3; ++k)
            file.bytes[sizeof head + random() % head.description_bytes] = static_cast<std::byte>(random());
        head.description_sum = crc32(file.bytes.subspan(sizeof head, head.content_at - sizeof head));
        head.sum = sum_of(head);
        std::memcpy(file.bytes.data(), &head, sizeof head);
        Model m;
        Fault fault;
        const bool done = read_model(file.bytes, m, fault);
        readable += done;
        EXPECT_EQ(done, fault.text.empty());
        EXPECT_TRUE(done || (fault.offset >= sizeof head && fault.offset <= text.size())) << fault.message();
    }
    EXPECT_LT(readable, 2000);
}

TEST(LiteFormat, AnEncryptedFileOpensByItsKeyAlone) {
    const std::string text = written(sample()), key = key_of("000102030405060708090a0b0c0d0e0f");
    ASSERT_EQ(key.size(), 16U);
    EXPECT_EQ(key_of("0001"), "");
    EXPECT_EQ(key_of("000102030405060708090a0b0c0d0e0x"), "");
    const std::string secret = encrypted(text, key, "twelve bytes");
    EXPECT_EQ(secret.find("sample"), std::string::npos);
    auto opens = [](const std::string& file, const std::string& by, FileBytes& plain) {
        Fault fault;
        return decrypt(std::as_bytes(std::span(file)), by, plain, fault);
    };
    FileBytes plain;
    ASSERT_TRUE(opens(secret, key, plain));
    EXPECT_EQ(std::memcmp(plain.data.get(), text.data(), text.size()), 0);
    Model m;
    Fault fault;
    EXPECT_TRUE(read_model(plain.span(), m, fault)) << fault.message();
    for (size_t i = 0; i < secret.size(); ++i) {
        std::string wrong = secret;
        wrong[i] = static_cast<char>(wrong[i] ^ 1 << i % 8);
        EXPECT_FALSE(opens(wrong, key, plain)) << "byte " << i;
    }
    for (size_t i = 0; i < 128; ++i) {
        std::string wrong = key;
        wrong[i / 8] = static_cast<char>(wrong[i / 8] ^ 1 << i % 8);
        EXPECT_FALSE(opens(secret, wrong, plain)) << "bit " << i;
    }
}

TEST(LiteFormat, AWrongModelIsNotWritten) {
    auto fault_of = [](auto&& change) {
        Model m = sample();
        change(m);
        return write_model(m, [](std::span<const std::byte>) { return true; });
    };
    EXPECT_EQ(fault_of([](Model&) {}), "");
    EXPECT_NE(fault_of([](Model& m) { m.steps[0].operands[0].value = 9; }), "");
    EXPECT_NE(fault_of([](Model& m) { std::swap(m.steps[0], m.steps[1]); }), "");
    EXPECT_NE(fault_of([](Model& m) { m.steps[1].sizes[0] = 9; }), "");
    EXPECT_NE(fault_of([](Model& m) { m.values[1].bytes = 4; }), "");
    EXPECT_NE(fault_of([](Model& m) { m.outputs = {2}; }), "");
    EXPECT_NE(fault_of([](Model& m) { m.loops[0].program.code[2].args = {0}; }), "");
    EXPECT_NE(fault_of([](Model& m) { m.steps[0].operands[0] = {0, false, {3}, {2}, 2}; }), "");
}

}  // namespace
}  // namespace lunaria::lite
