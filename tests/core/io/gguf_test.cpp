#include "core/io/gguf.h"

#include <sys/resource.h>

#include <ctime>
#include <fstream>

#include "core/io/npz.h"
#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using test::error_of;

const std::string kTypes = test::kSamples + "gguf/types.gguf";

std::string types() { return read_file(kTypes); }

std::string refused(const std::string& bytes, const std::string& part) {
    return error_of(
        [&] {
            const GgufFile file(memory_source("x.gguf", bytes));
            for (const auto& entry : file.entries()) file.read(entry);
        },
        part);
}

std::vector<Value> items_of(const GgufFile& file, std::string_view key) {
    std::vector<Value> items;
    file.find(key)->each([&](const Value& x) { items.push_back(x); });
    return items;
}

Tensor decoded(const GgufFile::Entry& entry, const Tensor& tensor) {
    if (!entry.form) return tensor.cast(DType::f32).contiguous();
    Tensor numbers = Tensor::empty(DType::f32, Shape(entry.shape));
    entry.form->decode(tensor.data<uint8_t>(), numbers.size() / entry.form->elements, numbers.data<float>());
    return numbers;
}

TEST(gguf, a_file_of_the_reference_has_its_values_and_numbers) {
    for (auto contents : {GgufFile::Contents::read, GgufFile::Contents::mapped}) {
        const GgufFile file(kTypes, contents);
        EXPECT_EQ(items_of(file, "general.architecture")[0].string(), "llama");
        EXPECT_EQ(items_of(file, "llama.block_count")[0].integer(), 3);
        EXPECT_EQ(items_of(file, "llama.rope.freq_base")[0].number(), 10000.0);
        EXPECT_TRUE(items_of(file, "tokenizer.ggml.add_bos_token")[0].boolean());
        EXPECT_EQ(items_of(file, "sample.large")[0].integer(), -(int64_t{1} << 40));
        const auto tokens = items_of(file, "tokenizer.ggml.tokens");
        ASSERT_EQ(tokens.size(), 3u);
        EXPECT_EQ(tokens[1].string(), "\xc3\xa4");
        EXPECT_EQ(tokens[2].string(), "");
        EXPECT_EQ(items_of(file, "tokenizer.ggml.scores")[1].number(), -1.5);
        EXPECT_EQ(items_of(file, "tokenizer.ggml.token_type")[0].integer(), 3);
        EXPECT_EQ(file.find("nothing"), nullptr);
        const NpzFile numbers(test::kSamples + "gguf/numbers.npz");
        ASSERT_EQ(file.entries().size(), 7u);
        for (const auto& entry : file.entries()) {
            SCOPED_TRACE(entry.name);
            const Value expected = numbers.read(entry.name);
            EXPECT_EQ(test::bytes_of(decoded(entry, file.read(entry))),
                      test::bytes_of(expected.tensor().cast(DType::f32).contiguous()));
        }
    }
}

TEST(gguf, written_blocks_are_the_reference_s) {
    const GgufFile file(kTypes);
    const Tensor x = file.read(file.entry("f32"));
    std::vector<GgufTensor> tensors;
    for (const auto& entry : file.entries()) tensors.push_back({entry.name, file.read(entry), entry.form});
    for (GgufTensor& t : tensors)
        if (t.name == "q8_0" || t.name == "q4_0") t.tensor = x;
    StringSink sink;
    write_gguf(sink, tensors, file.metadata());
    const GgufFile again(memory_source("x", sink.text()));
    ASSERT_EQ(again.metadata().size(), file.metadata().size());
    for (size_t i = 0; i < file.metadata().size(); ++i) {
        EXPECT_EQ(again.metadata()[i].first, file.metadata()[i].first);
        EXPECT_EQ(again.metadata()[i].second.bytes, file.metadata()[i].second.bytes);
    }
    for (const auto& entry : file.entries()) {
        EXPECT_EQ(again.entry(entry.name).shape, entry.shape);
        EXPECT_EQ(test::bytes_of(again.read(again.entry(entry.name))), test::bytes_of(file.read(entry))) << entry.name;
    }
}

TEST(gguf, numbers_that_are_not_finite_are_encoded_without_a_fault) {
    const float inf = std::numeric_limits<float>::infinity();
    std::vector<float> x(32, std::numeric_limits<float>::quiet_NaN());
    x[3] = inf;
    x[4] = -inf;
    for (const BlockForm& form : block_forms()) {
        std::vector<uint8_t> block(static_cast<size_t>(form.bytes));
        if (form.encode) form.encode(x.data(), 1, block.data());
    }
}

TEST(gguf, what_the_format_cannot_hold_is_refused) {
    StringSink sink;
    auto write = [&](const Tensor& t, const char* form) {
        const std::vector<GgufTensor> tensors{{"x", t, form ? find_block_form(form) : nullptr}};
        write_gguf(sink, tensors, {});
    };
    error_of([&] { write(Tensor::zeros(DType::u8, {2}), nullptr); }, "uint8");
    error_of([&] { write(Tensor::zeros(DType::f32, {2, 33}), "q8_0"); }, "no multiple of the 32");
    error_of([&] { write(Tensor::zeros(DType::u8, {2, 33}), "q8_0"); }, "no multiple of the 34");
    error_of([&] { write(Tensor::zeros(DType::f32, {256}), "q4_k"); }, "cannot be written as q4_k");
    error_of([&] { write(Tensor::zeros(DType::i32, {32}), "q4_0"); }, "int32");
    error_of([&] { write(Tensor::zeros(DType::f32, {1, 1, 1, 1, 1}), nullptr); }, "5 axes");
    // Such a file could not be read.
    for (const GgufValue& alignment : {GgufValue::of(int64_t{48}), GgufValue::of(int64_t{0}), GgufValue::of(-1.0)})
        error_of([&] { write_gguf(sink, {}, {{"general.alignment", alignment}}); }, "not a power of two");
}

TEST(gguf, a_number_is_believed_only_when_the_bytes_are_there) {
    const std::string good = types();
    refused("", "too short");
    refused(std::string(64, 'x'), "does not begin with GGUF");
    auto with = [&](size_t at, const std::string& bytes) {
        std::string text = good;
        return text.replace(at, bytes.size(), bytes);
    };
    const std::string all(8, '\xff');
    refused(with(4, std::string("\1\0\0\0", 4)), "version 1");
    refused(with(4, std::string("\0\0\0\3", 4)), "big-endian");
    refused(with(8, all), "byte 8");
    refused(with(16, all), "byte 16");
    refused(with(24, all), "byte 24");
    const size_t tokens = good.find("tokenizer.ggml.tokens") + 21;
    refused(with(tokens, std::string("\x63", 1)), "unknown type");
    refused(with(tokens + 4, std::string("\x09", 1)), "an array of arrays");
    refused(with(tokens + 8, all), "items");
    const size_t tensor = good.find("q8_0") + 4;
    refused(with(tensor, std::string("\x09", 1)), "9 axes");
    refused(with(tensor + 4, all), "too large");
    refused(with(tensor + 4, std::string("\x01", 1)), "in blocks of 32");
    refused(with(tensor + 20, std::string("\x03", 1)), "Q4_1, which is not supported");
    refused(with(tensor + 24, std::string("\x01", 1)), "no multiple of 32");
    refused(with(tensor + 24, std::string(8, '\0')), "overlap");
    for (size_t size : {23u, 30u, 100u, 400u, 700u, 2000u}) refused(good.substr(0, size), "");
    refused(good.substr(0, good.size() - 100), "truncated");
}

// 4 GB that are zeros of a sparse file.
TEST(gguf, a_file_of_4_gb_opens_at_once_and_takes_no_memory) {
    const test::Scratch scratch;
    const std::string path = scratch.path("large.gguf");
    {
        std::vector<GgufTensor> tensors{{"x", Tensor::zeros(DType::f32, {32}), find_block_form("q8_0")}};
        write_gguf(path, tensors, {});
        // The number of rows in the header becomes that of 4 GB.
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        const std::string header = read_file(path);
        const uint64_t rows = (uint64_t{1} << 32) / 34;
        file.seekp(static_cast<std::streamoff>(header.find('x') + 1 + 4));
        const uint64_t row = 32 * rows;
        file.write(reinterpret_cast<const char*>(&row), 8);
    }
    std::filesystem::resize_file(path, (uint64_t{1} << 32) + 64);
    auto resident = [] {
        std::ifstream status("/proc/self/statm");
        long total = 0, pages = 0;
        status >> total >> pages;
        return pages * 4096;
    };
    const long before = resident();
    // Time of the processor, which others do not take: to read the file would be seconds.
    const std::clock_t start = std::clock();
    const GgufFile file(path, GgufFile::Contents::mapped);
    const Tensor x = file.read(file.entry("x"));
    EXPECT_LE(std::clock() - start, CLOCKS_PER_SEC / 2);
    EXPECT_LE(resident() - before, 4 << 20);  // what instrumented programs note about it included
    EXPECT_GT(x.nbytes(), size_t{4000000000});
    EXPECT_EQ(x.data<uint8_t>()[x.nbytes() - 1], 0);
}

}  // namespace
}  // namespace lunaria
