#include "core/io/safetensors.h"

#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using test::error_of;

std::string file(const std::string& header, const std::string& data = "", int64_t length = -1) {
    uint64_t n = length < 0 ? header.size() : static_cast<uint64_t>(length);
    return std::string(reinterpret_cast<const char*>(&n), 8) + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& range) {
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + range + "}";
}

std::vector<NamedTensor> read(const std::string& bytes) {
    return SafetensorsFile(memory_source("x.safetensors", bytes)).read_all();
}

std::string refused(const std::string& bytes, const std::string& part) {
    return error_of([&] { read(bytes); }, part);
}

TEST(safetensors, what_the_format_has_no_type_for_is_refused) {
    StringSink sink;
    EXPECT_THROW(write_safetensors(sink, {{NamedTensor{"x", Tensor::zeros(DType::q4x2, {2})}}}, {}), Error);
}

TEST(safetensors, every_dtype_survives_a_round_trip) {
    std::vector<NamedTensor> tensors;
    for (int i = 0; i < kDTypeCount; ++i) {
        DType dtype = static_cast<DType>(i);
        if (dtype == DType::q4x2) continue;
        Tensor t = Tensor::empty(dtype, {3, 2});
        for (int64_t k = 0; k < 6; ++k) t.set_at(k, k % 2);
        tensors.emplace_back(std::string(name_of(dtype)), t);
    }
    tensors.emplace_back("scalar", Tensor::scalar(DType::f32, 2.5));
    tensors.emplace_back("empty", Tensor::zeros(DType::f32, {0, 3}));
    tensors.emplace_back("__proto__", Tensor::scalar(DType::f32, 1));
    tensors.emplace_back("", Tensor::scalar(DType::f32, 2));
    tensors.emplace_back(std::string(1 << 20, 'n'), Tensor::scalar(DType::f32, 3));
    StringSink sink;
    write_safetensors(sink, tensors, {{"format", "lunaria"}, {"note", "\xc3\xa4\n\"\\"}});
    SafetensorsFile back(memory_source("x", sink.text()));
    auto read = back.read_all();
    ASSERT_EQ(read.size(), tensors.size());
    for (size_t i = 0; i < read.size(); ++i) {
        EXPECT_EQ(read[i].first, tensors[i].first);
        EXPECT_EQ(read[i].second.dtype(), tensors[i].second.dtype());
        EXPECT_EQ(read[i].second.shape(), tensors[i].second.shape());
        EXPECT_EQ(test::bytes_of(read[i].second), test::bytes_of(tensors[i].second));
    }
    EXPECT_EQ(back.metadata()[1].second, "\xc3\xa4\n\"\\");
    EXPECT_EQ(back.read("scalar").at(0), 2.5);
    error_of([&] { back.read("nothing"); }, "'nothing'");
}

TEST(safetensors, the_smallest_files_are_read) {
    EXPECT_TRUE(read(file("{}")).empty());
    EXPECT_TRUE(read(file("{\"__metadata__\":{\"a\":\"b\"}}   ")).empty());
    EXPECT_EQ(read(file("{" + entry("t", "I16", "[]", "[0,2]") + "}", std::string("\7\0", 2)))[0].second.integer_at(0),
              7);
}

TEST(safetensors, a_length_is_believed_only_when_the_bytes_are_there) {
    refused("", "empty");
    refused(std::string(8, '\0'), "too short");
    refused(file("{}", "", 100), "truncated");
    refused(file("{}", "", 100000001), "at most 100000000");
    refused(file("{}", "", INT64_MAX), "at most");
    refused(file("{" + entry("t", "U8", "[4611686018427387904]", "[0,4611686018427387904]") + "}", "x"), "truncated");
    refused(file("{" + entry("t", "F32", "[4611686018427387904,4]", "[0,0]") + "}"), "overflows");
    refused(file("{" + entry("t", "F32", "[99999999999999999999]", "[0,4]") + "}"), "64 bits");
    refused(file("{" + entry("t", "F32", "[18446744073709551615]", "[0,4]") + "}"), "63 bits");
    refused(file("{" + entry("t", "F32", "[2]", "[0,8]") + "}", "1234567"), "truncated");
    refused(file(std::string(1000, ' ')), "not a safetensors file");
}

TEST(safetensors, ranges_must_follow_each_other_to_the_end) {
    refused(file("{" + entry("t", "U8", "[2]", "[0,2]") + "}", "123"), "belong to no tensor");
    refused(file("{" + entry("t", "U8", "[2]", "[1,3]") + "}", "123"), "hole");
    refused(file("{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "U8", "[2]", "[1,3]") + "}", "123"),
            "overlap");
    refused(file("{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "U8", "[2]", "[0,2]") + "}", "12"),
            "overlap");
    refused(file("{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "U8", "[1]", "[3,4]") + "}", "1234"),
            "hole");
    refused(file("{" + entry("t", "U8", "[2]", "[2,0]") + "}", "12"), "wrong order");
    refused(file("{" + entry("t", "F32", "[2]", "[0,7]") + "}", "1234567"), "needs 8 bytes");
    auto back =
        read(file("{" + entry("b", "U8", "[1]", "[2,3]") + "," + entry("a", "U8", "[2]", "[0,2]") + "}", "\1\2\3"));
    EXPECT_EQ(back[0].first, "b");
    EXPECT_EQ(back[0].second.integer_at(0), 3);
}

TEST(safetensors, the_header_is_held_to_the_format) {
    std::string good = entry("t", "U8", "[1]", "[0,1]");
    refused(file(" {" + good + "}", "1"), "not a safetensors file");
    refused(file("{" + good + "," + good + "}", "1"), "twice");
    refused(file("{\"t\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "1"), "twice");
    refused(file("{\"t\":{\"dtype\":\"U8\",\"shape\":[1]}}", "1"), "data_offsets");
    refused(file("{\"t\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", "1"), "shape");
    refused(file("{\"t\":{\"shape\":[1],\"data_offsets\":[0,1]}}", "1"), "dtype");
    refused(file("{\"t\":5}", "1"), "number");
    refused(file("{\"t\":null}"), "null");
    refused(file("{\"t\":[1]}"), "array");
    refused(file("[]"), "format");
    refused(file("{" + good, "1"), "JSON");
    refused(file("{" + good + "} x", "1"), "JSON");
    refused(file("{\"\xff\":{}}"), "JSON");
    refused(file("{\"__metadata__\":{\"a\":1}}"), "number");
    refused(file("{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}"), "object");
    refused(file("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"), "twice");
    refused(file("{" + entry("t", "U8", "[-1]", "[0,1]") + "}", "1"), "negative");
    refused(file("{" + entry("t", "U8", "[1.0]", "[0,1]") + "}", "1"), "whole numbers");
    refused(file("{" + entry("t", "U8", "[1]", "[0,1,2]") + "}", "1"), "two numbers");
    refused(file("{" + entry("t", "Float99", "[1]", "[0,1]") + "}", "1"), "Float99");
    std::string deep = "{\"t\":";
    for (int i = 0; i < 200000; ++i) deep += "[";
    refused(file(deep), "array");
    std::string objects = "{\"t\":";
    for (int i = 0; i < 200000; ++i) objects += "{\"a\":";
    refused(file(objects), "object");
}

TEST(safetensors, types_and_ranks_that_tensors_lack_are_named) {
    refused(file("{" + entry("t", "F8_E8M0", "[3]", "[0,3]") + "}", "123"), "F8_E8M0");
    refused(file("{" + entry("t", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") + "}", "1"), "9 axes");
    const std::string bytes =
        file("{" + entry("a", "F8_E8M0", "[8]", "[0,8]") + "," + entry("b", "U8", "[1]", "[8,9]") + "}", "12345678\5");
    SafetensorsFile both(memory_source("x", bytes));
    EXPECT_EQ(both.read("b").integer_at(0), 5);
}

TEST(safetensors, names_that_cannot_be_written_are_refused) {
    StringSink sink;
    Tensor t = Tensor::scalar(int64_t{1});
    error_of([&] { write_safetensors(sink, std::vector<NamedTensor>{{"__metadata__", t}}); }, "__metadata__");
    error_of([&] { write_safetensors(sink, std::vector<NamedTensor>{{"a", t}, {"a", t}}); }, "two tensors");
    error_of([&] { write_safetensors(sink, std::vector<NamedTensor>{{"\xff", t}}); }, "UTF-8");
}

}  // namespace
}  // namespace lunaria
