#include "core/io/ckpt.h"

#include <fstream>
#include <sstream>

#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using test::error_of;

std::vector<NamedCkptValue> read(const std::string& bytes, CkptCheck check = CkptCheck::present) {
    return CkptFile(memory_source("x.ckpt", bytes), check).read_all();
}

std::string written(const std::vector<NamedCkptValue>& values, bool checksum = false) {
    StringSink sink;
    write_ckpt(sink, values, checksum);
    return sink.text();
}

std::vector<NamedCkptValue> some_values() {
    std::vector<NamedCkptValue> values;
    for (int i = 0; i < kDTypeCount; ++i) {
        const auto dtype = static_cast<DType>(i);
        Tensor t = Tensor::empty(dtype, {3, 2});
        for (int64_t k = 0; k < 6; ++k) t.set_at(k, k % 2);
        values.emplace_back(std::string(name_of(dtype)), t);
    }
    values.emplace_back("scalar", Tensor::scalar(DType::f32, 2.5));
    values.emplace_back("empty", Tensor::zeros(DType::f32, {0, 3}));
    values.emplace_back("text", std::string("\xc3\xa4 \xe2\x82\xac \xf0\x9d\x84\x9e"));
    return values;
}

TEST(ckpt, values_survive_a_round_trip) {
    const auto values = some_values();
    for (const bool checksum : {false, true}) {
        const auto again = read(written(values, checksum), checksum ? CkptCheck::required : CkptCheck::present);
        ASSERT_EQ(again.size(), values.size());
        for (size_t i = 0; i < values.size(); ++i) {
            EXPECT_EQ(again[i].first, values[i].first);
            if (const auto* text = std::get_if<std::string>(&values[i].second)) {
                EXPECT_EQ(std::get<std::string>(again[i].second), *text);
                continue;
            }
            const Tensor &a = std::get<Tensor>(again[i].second), &b = std::get<Tensor>(values[i].second);
            EXPECT_EQ(a.dtype(), b.dtype());
            EXPECT_EQ(a.shape(), b.shape());
            EXPECT_EQ(test::bytes_of(a), test::bytes_of(b));
        }
    }
}

TEST(ckpt, every_flipped_bit_is_noticed_by_the_checksum) {
    const std::string whole = written(some_values(), true);
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
        std::string damaged = whole;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
        error_of([&] { read(damaged, CkptCheck::required); }, "x.ckpt: ");
    }
}

TEST(ckpt, a_file_that_is_cut_anywhere_is_read_up_to_whole_values_or_refused) {
    const auto values = some_values();
    const std::string whole = written(values);
    size_t read_whole = 0;
    for (size_t length = 1; length < whole.size(); ++length) {
        try {
            const auto part = read(whole.substr(0, length));
            EXPECT_LT(part.size(), values.size());
            ++read_whole;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("offset"), std::string::npos) << error.what();
        }
    }
    EXPECT_EQ(read_whole, values.size() - 1);
}

TEST(ckpt, names_must_differ_and_be_text) {
    const Tensor one = Tensor::scalar(DType::f32, 1);
    error_of([&] { written({{"a", one}, {"a", one}}); }, "given twice");
    error_of([&] { written({{"\xff", one}}); }, "UTF-8");
    error_of([&] { written({{"a", std::string("\xff")}}); }, "UTF-8");
}

}  // namespace
}  // namespace lunaria
