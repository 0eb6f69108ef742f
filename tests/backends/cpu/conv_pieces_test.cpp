// Convolutions that are cut into pieces give what they give in one.
#include "backends/cpu/conv_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/interrupt.h"

namespace lunaria::cpu {
namespace {

using Floats = std::vector<float>;
constexpr double kWhole = std::numeric_limits<double>::infinity();

Floats random_numbers(int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> number(-1, 1);
    Floats list(static_cast<size_t>(count));
    for (float& x : list) x = number(random);
    return list;
}

Convolution convolution(int axes, int64_t batch, int64_t in, int64_t out, int64_t groups, Window::Sizes size,
                        Window::Sizes kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after) {
    Convolution c;
    c.batch = batch;
    c.in_channels = in;
    c.out_channels = out;
    c.groups = groups;
    Window& w = c.window;
    w.axes = axes;
    for (int axis = w.first(); axis < Window::kAxes; ++axis) {
        const auto i = static_cast<size_t>(axis);
        w.in[i] = size[i];
        w.kernel[i] = kernel[i];
        w.stride[i] = stride;
        w.dilation[i] = dilation;
        w.before[i] = before;
        w.after[i] = after;
        w.out[i] = (w.in[i] + before + after - w.reach(axis)) / stride + 1;
    }
    return c;
}

std::vector<Convolution> convolutions() {
    return {
        convolution(2, 1, 16, 32, 1, {1, 40, 33}, {1, 3, 3}, 1, 1, 1, 1),
        convolution(2, 1, 16, 32, 1, {1, 40, 33}, {1, 3, 3}, 2, 1, 1, 1),
        convolution(2, 1, 16, 32, 1, {1, 41, 33}, {1, 2, 2}, 3, 1, 0, 0),
        convolution(2, 1, 3, 20, 1, {1, 40, 37}, {1, 5, 3}, 2, 2, 2, 1),
        convolution(2, 1, 24, 24, 24, {1, 40, 33}, {1, 3, 3}, 1, 1, 1, 1),
        convolution(2, 1, 32, 64, 4, {1, 40, 33}, {1, 3, 3}, 1, 1, 1, 1),
        convolution(2, 7, 16, 16, 1, {1, 20, 20}, {1, 3, 3}, 1, 1, 1, 1),
        convolution(2, 3, 64, 64, 1, {1, 31, 20}, {1, 1, 1}, 1, 1, 0, 0),
        convolution(2, 2, 300, 200, 1, {1, 5, 6}, {1, 3, 3}, 1, 1, 1, 1),
        convolution(2, 2, 8, 8, 1, {1, 20, 20}, {1, 3, 3}, 1, 1, 4, 4),
        convolution(1, 2, 32, 48, 1, {1, 1, 400}, {1, 1, 9}, 1, 1, 4, 4),
        convolution(1, 1, 5, 7, 1, {1, 1, 401}, {1, 1, 4}, 3, 1, 2, 3),
        convolution(3, 1, 16, 16, 1, {9, 12, 14}, {3, 3, 3}, 1, 1, 1, 1),
        convolution(3, 2, 4, 16, 1, {9, 13, 14}, {2, 3, 3}, 2, 1, 1, 0),
    };
}

std::string told(const Convolution& c, ConvKind kind, double most) {
    return str("kind ", static_cast<int>(kind), ", ", c.input_shape(), " by ", c.weight_shape(), ", at most ", most);
}

struct Arrays {
    Floats x, w, y, bias;
    explicit Arrays(const Convolution& c)
        : x(random_numbers(c.input_shape().size(), 1)),
          w(random_numbers(c.weight_shape().size(), 2)),
          y(random_numbers(c.output_shape().size(), 3)),
          bias(random_numbers(c.out_channels, 4)) {}
    Floats& result(ConvKind kind) { return kind == ConvKind::forward ? y : kind == ConvKind::input_grad ? x : w; }
    Floats& run(ConvKind kind, const Convolution& c, double most) {
        Floats& to = result(kind);
        to.assign(to.size(), std::nanf(""));
        const float* b = kind == ConvKind::forward ? bias.data() : nullptr;
        EXPECT_TRUE(dnn_convolve(kind, c, x.data(), w.data(), b, y.data(), nullptr, most));
        return to;
    }
};

TEST(ConvPiecesTest, pieces_give_what_the_whole_gives) {
    for (const Convolution& c : convolutions())
        for (const ConvKind kind : {ConvKind::forward, ConvKind::input_grad, ConvKind::weight_grad}) {
            Arrays arrays(c);
            const Floats whole = arrays.run(kind, c, kWhole);
            for (const double share : {0.2, 0.06, 0.02}) {
                const double most = products_of(c) * share + 1;
                const Floats& cut = arrays.run(kind, c, most);
                // oneDNN adds up the products of 1x1, and those of odd or of many channels, as their sizes ask for;
                // without AVX-512 it computes what has wide padding by another loop than a piece within that has none.
                constexpr int64_t kWidePadding = 4;
                const bool is_padded_wide = *std::ranges::max_element(c.window.before) >= kWidePadding;
                const bool is_exact = kind == ConvKind::forward && c.window.kernel_size() > 1 &&
                                      c.in_channels % 8 == 0 && !is_padded_wide;
                for (size_t i = 0; i < whole.size(); ++i)
                    if (is_exact)
                        ASSERT_EQ(cut[i], whole[i]) << told(c, kind, most) << ", element " << i;
                    else
                        ASSERT_NEAR(cut[i], whole[i], 1e-5 * std::sqrt(products_of(c)))
                            << told(c, kind, most) << ", element " << i;
            }
        }
}

// As a sum of products each of which belongs to one piece.
TEST(ConvPiecesTest, each_product_is_in_one_piece) {
    for (const Convolution& c : convolutions()) {
        double products = 0;
        size_t outputs = 0;
        for (const ConvPiece& piece : conv_pieces(ConvKind::forward, c, products_of(c) / 5)) {
            products += products_of(piece.conv);
            outputs += static_cast<size_t>(piece.conv.output_shape().size());
            EXPECT_LE(products_of(piece.conv), products_of(c) / 2) << told(c, ConvKind::forward, 0);
        }
        EXPECT_EQ(products, products_of(c));
        EXPECT_EQ(outputs, static_cast<size_t>(c.output_shape().size()));
    }
}

TEST(ConvPiecesTest, an_image_of_a_thousand_rows_has_pieces_of_few_geometries) {
    const Convolution c = convolution(2, 1, 64, 64, 1, {1, 1000, 1000}, {1, 3, 3}, 1, 1, 1, 1);
    for (const ConvKind kind : {ConvKind::forward, ConvKind::input_grad, ConvKind::weight_grad}) {
        const auto pieces = conv_pieces(kind, c, products_of(c) / 100);
        EXPECT_GE(pieces.size(), 100u);
        for (size_t i = 2; i + 1 < pieces.size(); ++i) {
            EXPECT_EQ(pieces[i].conv.window.in, pieces[1].conv.window.in);
            EXPECT_EQ(pieces[i].conv.window.out, pieces[1].conv.window.out);
            EXPECT_EQ(pieces[i].conv.window.before, pieces[1].conv.window.before);
        }
    }
}

TEST(ConvPiecesTest, channels_last_are_cut_as_well) {
    const Convolution c = convolution(2, 1, 16, 32, 1, {1, 60, 40}, {1, 3, 3}, 2, 1, 1, 1);
    Arrays arrays(c);
    for (const ConvLayout layout : {ConvLayout::last, ConvLayout::front_to_last}) {
        auto run = [&](double most) {
            arrays.y.assign(arrays.y.size(), std::nanf(""));
            EXPECT_TRUE(dnn_convolve_last(layout, c, arrays.x.data(), arrays.w.data(), arrays.bias.data(),
                                          arrays.y.data(), most));
            return arrays.y;
        };
        const Floats whole = run(kWhole);
        for (const int64_t pieces : {2, 7, 30}) EXPECT_EQ(run(products_of(c) / static_cast<double>(pieces)), whole);
    }
}

TEST(ConvPiecesTest, an_interrupt_is_noticed_between_pieces) {
    for (const Convolution& c : convolutions())
        for (const ConvKind kind : {ConvKind::forward, ConvKind::input_grad, ConvKind::weight_grad}) {
            Arrays arrays(c);
            const Floats before = arrays.run(kind, c, kWhole);
            request_interrupt();
            EXPECT_THROW(dnn_convolve(kind, c, arrays.x.data(), arrays.w.data(), nullptr, arrays.y.data(), nullptr,
                                      products_of(c) / 16),
                         Error)
                << told(c, kind, products_of(c) / 16);
            clear_interrupt();
        }
}

}  // namespace
}  // namespace lunaria::cpu
