#include "core/io/npy.h"

#include <numeric>

#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using test::error_of;

std::string npy(const std::string& header, const std::string& data = "", char major = 1, int length = -1) {
    size_t size = length < 0 ? header.size() : static_cast<size_t>(length);
    std::string file(kNpyMagic);
    file += major;
    file += '\0';
    for (int i = 0; i < (major == 1 ? 2 : 4); ++i) file += static_cast<char>(size >> (8 * i) & 0xff);
    return file + header + data;
}

std::string header(const std::string& descr, const std::string& shape, const std::string& order = "False") {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

Tensor read(const std::string& bytes) { return read_npy(*memory_source("x.npy", bytes)); }

std::string refused(const std::string& bytes, const std::string& part) {
    return error_of([&] { read(bytes); }, part);
}

Tensor counting(DType dtype, const Shape& shape) {
    Tensor t = Tensor::empty(dtype, shape);
    for (int64_t i = 0; i < t.size(); ++i) t.set_at(i, dtype == DType::boolean ? i % 2 : i);
    return t;
}

TEST(npy, every_dtype_survives_a_round_trip) {
    for (DType dtype : {DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16,
                        DType::f32, DType::f64, DType::c64, DType::u16, DType::u32, DType::u64, DType::c128})
        for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{0, 4}, Shape{1, 2, 1, 3, 1, 1, 2, 1}}) {
            Tensor t = counting(dtype, shape);
            StringSink sink;
            write_npy(sink, t);
            EXPECT_EQ((sink.text().size() - t.nbytes()) % 64, 0u);
            Tensor back = read(sink.text());
            EXPECT_EQ(back.dtype(), dtype);
            EXPECT_EQ(back.shape(), shape);
            EXPECT_EQ(test::bytes_of(back), test::bytes_of(t));
        }
}

TEST(npy, a_view_is_written_in_its_own_order) {
    Tensor t = counting(DType::f32, {2, 3});
    StringSink sink;
    write_npy(sink, t.view({3, 2}, {1, 3}));
    Tensor back = read(sink.text());
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(back.at(i), i % 2 * 3 + i / 2);
}

TEST(npy, bfloat16_has_no_name_there) {
    StringSink sink;
    error_of([&] { write_npy(sink, Tensor::zeros(DType::bf16, {2})); }, "safetensors");
}

TEST(npy, both_byte_orders_are_read) {
    Tensor t = read(npy(header(">i2", "(2,)"), std::string("\x01\x02\xff\xfe", 4)));
    EXPECT_EQ(t.integer_at(0), 0x0102);
    EXPECT_EQ(t.integer_at(1), -2);
    Tensor c = read(npy(header(">c8", "(1,)"), std::string("\x3f\x80\0\0\xc0\0\0\0", 8)));
    EXPECT_EQ(*c.data<Complex64>(), Complex64(1.0f, -2.0f));
}

TEST(npy, fortran_order_is_undone) {
    Tensor t = read(npy(header("|u1", "(2, 3)", "True"), std::string("\0\3\1\4\2\5", 6)));
    EXPECT_EQ(t.shape(), (Shape{2, 3}));
    EXPECT_TRUE(t.is_contiguous());
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(t.integer_at(i), i);
}

TEST(npy, any_non_zero_byte_of_a_bool_is_true) {
    Tensor t = read(npy(header("|b1", "(3,)"), std::string("\0\1\7", 3)));
    EXPECT_EQ(test::bytes_of(t), std::string_view("\0\1\1", 3));
}

TEST(npy, version_2_has_a_longer_header) {
    EXPECT_EQ(read(npy(header("<i4", "()"), std::string("\5\0\0\0", 4), 2)).integer_at(0), 5);
    EXPECT_EQ(read(npy(header("<i4", "()"), std::string("\5\0\0\0", 4), 3)).integer_at(0), 5);
    refused(npy(header("<i4", "()"), "", 4), "version 4.0");
}

TEST(npy, a_size_is_believed_only_when_its_bytes_are_there) {
    refused(npy(header("<f8", "(1099511627776, 1099511627776)")), "too large");
    refused(npy(header("<f8", "(1099511627776,)")), "8796093022208");
    refused(npy(header("<f8", "(4611686018427387904, 0, 3)"), "x"), "bytes follow");
    refused(npy(header("<f8", "(99999999999999999999,)")), "64 bits");
    refused(npy(header("<i4", "(3,)"), "12345678"), "12 bytes");
    refused(npy(header("<i4", "(2,)"), "123456789"), "1 bytes follow");
    refused(npy(header("<i4", "(-2,)"), "12345678"), "negative");
    refused(npy(header("<i4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "1234"), "9 axes");
    refused(npy("{", "", 1, 65535), "65535");
    refused(npy(std::string(20000, ' ')), "at most 10000");
}

TEST(npy, only_the_three_keys_and_their_literals_are_understood) {
    refused(npy("__import__('os').system('true')\n"), "header");
    refused(npy("{'descr': '<f4', 'shape': (1,), }\n", "1234"), "fortran_order");
    refused(npy("{'fortran_order': False, 'shape': (1,), }\n", "1234"), "descr");
    refused(npy("{'descr': '<f4', 'fortran_order': False}\n", "1234"), "shape");
    refused(npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}\n", "1234"), "repeated");
    refused(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}\n", "1234"), "fortran_order");
    refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}\n", "1234"), "tuple");
    refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x\n", "1234"), "after");
    refused(npy("{'descr': '<f4"), "end");
    EXPECT_EQ(read(npy("{\"shape\":(1L,),\"fortran_order\":True,\"descr\":\"<i4\"}", std::string("\1\0\0\0", 4)))
                  .integer_at(0),
              1);
}

TEST(npy, types_that_tensors_lack_are_refused_with_a_way_out) {
    refused(npy(header("|O", "(1,)"), "pickle"), "pickle");
    refused(npy(header("<f16", "(1,)"), "1234567812345678"), "astype");
    refused(npy(header("<c32", "(0,)")), "complex128");
    refused(npy(header("<U5", "(0,)")), "holds texts");
    refused(npy(header("<U5x", "(0,)")), "not supported");
    refused(npy(header("<M8[ns]", "(0,)")), "not supported");
    refused(npy(header("", "(0,)")), "not supported");
    refused(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}\n", "1234"), "structured");
}

TEST(npy, files_are_read_and_written_by_path) {
    test::Scratch scratch;
    Tensor t = counting(DType::f64, {3, 4});
    write_npy(scratch.path("a.npy"), t);
    EXPECT_EQ(test::bytes_of(read_npy(scratch.path("a.npy"))), test::bytes_of(t));
    error_of([&] { read_npy(scratch.path("b.npy")); }, "b.npy");
    write_file(scratch.path("c.npy"), "");
    error_of([&] { read_npy(scratch.path("c.npy")); }, "empty");
}

}  // namespace
}  // namespace lunaria
