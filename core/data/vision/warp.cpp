// Rotations, shears and perspectives. The position in the input is computed for each pixel of the output, in steps of
// 1/32 of a pixel (1/1024 where the nearest pixel is taken) as OpenCV does, so that the values are those that MindSpore
// gives.
#include <array>

#include "core/base/interrupt.h"
#include "core/data/vision/image.h"

namespace lunaria::vision {

namespace {

constexpr int kParts = 32;

struct At {
    int64_t x, y;
    int fx, fy;  // in 1/32
};

int64_t whole(double x) { return std::llrint(std::clamp(x, -1e9, 1e9)); }

class Places {
  public:
    Places(const Matrix& m, bool nearest) : m_(m), nearest_(nearest), affine_(m.m[6] == 0 && m.m[7] == 0) {}
    At at(int64_t x, int64_t y) const {
        const double* m = m_.m;
        const auto dx = static_cast<double>(x), dy = static_cast<double>(y);
        int64_t px = 0, py = 0;
        if (affine_) {
            const int64_t half = nearest_ ? 512 : 1024 / kParts / 2;
            px = whole((m[1] * dy + m[2]) * 1024) + half + whole(m[0] * dx * 1024);
            py = whole((m[4] * dy + m[5]) * 1024) + half + whole(m[3] * dx * 1024);
            if (nearest_) return {px >> 10, py >> 10, 0, 0};
            px >>= 5;
            py >>= 5;
        } else {
            double w = m[6] * dx + m[7] * dy + m[8];
            w = w != 0 ? (nearest_ ? 1 : kParts) / w : 0;
            px = whole((m[0] * dx + m[1] * dy + m[2]) * w);
            py = whole((m[3] * dx + m[4] * dy + m[5]) * w);
            if (nearest_) return {px, py, 0, 0};
        }
        return {px >> 5, py >> 5, static_cast<int>(px & (kParts - 1)), static_cast<int>(py & (kParts - 1))};
    }

  private:
    Matrix m_;
    bool nearest_, affine_;
};

using Weights = std::array<std::array<float, 4>, kParts>;

Weights linear_weights() {
    Weights list{};
    for (size_t i = 0; i < kParts; ++i)
        list[i] = {1 - static_cast<float>(i) / kParts, static_cast<float>(i) / kParts, 0, 0};
    return list;
}

Weights cubic_weights() {
    Weights list{};
    for (size_t i = 0; i < kParts; ++i) {
        const float x = static_cast<float>(i) / kParts, p = -0.75f;
        list[i][0] = ((p * (x + 1) - 5 * p) * (x + 1) + 8 * p) * (x + 1) - 4 * p;
        list[i][1] = ((p + 2) * x - (p + 3)) * x * x + 1;
        list[i][2] = ((p + 2) * (1 - x) - (p + 3)) * (1 - x) * (1 - x) + 1;
        list[i][3] = 1.0f - list[i][0] - list[i][1] - list[i][2];
    }
    return list;
}

template <class T>
T nearest_level(float x) {
    if constexpr (std::is_same_v<T, uint8_t>)
        return static_cast<uint8_t>(std::clamp(std::floor(x + 0.5f), 0.0f, 255.0f));
    else
        return x;
}

template <class T>
void sample(const Tensor& image, const Tensor& out, const Places& places, Inter inter, const double* fill) {
    const Extent e = extent(image), o = extent(out);
    const int taps = inter == Inter::nearest ? 1 : inter == Inter::cubic ? 4 : 2;
    const int before = taps == 4 ? 1 : 0;
    const Weights weights = taps == 4 ? cubic_weights() : linear_weights();
    const T* from = image.data<T>();
    T* to = out.data<T>();
    std::vector<float> outside;
    for (int64_t c = 0; c < e.channels; ++c) outside.push_back(static_cast<float>(fill[c < 3 ? c : 2]));
    const auto pixel = [&](int64_t x, int64_t y, int64_t c) {
        return x < 0 || y < 0 || x >= e.width || y >= e.height
                   ? outside[static_cast<size_t>(c)]
                   : static_cast<float>(from[y * e.pitch() + x * e.channels + c]);
    };
    for (int64_t y = 0; y < o.height; ++y) {
        poll_interrupt();
        for (int64_t x = 0; x < o.width; ++x) {
            const At at = places.at(x, y);
            for (int64_t c = 0; c < e.channels; ++c) {
                float sum = 0;
                if (taps == 1) {
                    sum = pixel(at.x, at.y, c);
                } else {
                    const auto &wx = weights[static_cast<size_t>(at.fx)], &wy = weights[static_cast<size_t>(at.fy)];
                    for (int j = 0; j < taps; ++j) {
                        float line = 0;
                        for (int i = 0; i < taps; ++i)
                            line += wx[static_cast<size_t>(i)] * pixel(at.x - before + i, at.y - before + j, c);
                        sum += wy[static_cast<size_t>(j)] * line;
                    }
                }
                *to++ = nearest_level<T>(sum);
            }
        }
    }
}

Matrix product(const Matrix& a, const Matrix& b) {
    Matrix p{};
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 3; ++k) p.m[3 * i + j] += a.m[3 * i + k] * b.m[3 * k + j];
    return p;
}

double radians(double degrees) { return degrees * M_PI / 180; }

// interpolation, expand, has a centre, its x and y, fill
Tensor rotated(const Arguments& a, const Tensor& image, double degrees, size_t first) {
    const Extent e = extent(image);
    const double c = std::cos(radians(degrees)), s = std::sin(radians(degrees));
    const bool expand = a.flag(first + 1), centred = a.flag(first + 2);
    const double cx = centred ? a.number(first + 3) : static_cast<double>(e.width - 1) / 2;
    const double cy = centred ? a.number(first + 4) : static_cast<double>(e.height - 1) / 2;
    Matrix m{{c, s, (1 - c) * cx - s * cy, -s, c, s * cx + (1 - c) * cy, 0, 0, 1}};
    int64_t height = e.height, width = e.width;
    if (expand) {
        const double w = std::abs(c) * static_cast<double>(e.width) + std::abs(s) * static_cast<double>(e.height);
        const double h = std::abs(s) * static_cast<double>(e.width) + std::abs(c) * static_cast<double>(e.height);
        width = std::max<int64_t>(1, std::llrint(w));
        height = std::max<int64_t>(1, std::llrint(h));
        m.m[2] += (w - static_cast<double>(e.width)) / 2;
        m.m[5] += (h - static_cast<double>(e.height)) / 2;
    }
    const double fill[3] = {a.number(first + 5), a.number(first + 6), a.number(first + 7)};
    return warp(a, image, inverse(m, a.where), height, width, static_cast<Inter>(a.integer(first)), fill);
}

void run_rotate(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) { return rotated(a, image, a.number(0), 1); });
}

void run_random_rotation(Row& row, const Arguments& a, RowDraws& draws) {
    const double degrees = draws.between(a.number(0), a.number(1));
    each_image(row, a, [&](const Tensor& image) { return rotated(a, image, degrees, 2); });
}

struct Change {
    double degrees, right, down, scale, shear_x, shear_y;
};

Tensor changed(const Arguments& a, const Tensor& image, const Change& k, size_t first) {
    const Extent e = extent(image);
    const double r = radians(k.degrees), sx = radians(k.shear_x), sy = -radians(k.shear_y);
    const double cx = static_cast<double>(e.width - 1) / 2, cy = static_cast<double>(e.height - 1) / 2;
    const Matrix turn{{k.scale * std::cos(r + sy) / std::cos(sy),
                       k.scale * (-std::cos(r + sy) * std::tan(sx) / std::cos(sy) - std::sin(r)), 0,
                       k.scale * std::sin(r + sy) / std::cos(sy),
                       k.scale * (-std::sin(r + sy) * std::tan(sx) / std::cos(sy) + std::cos(r)), 0, 0, 0, 1}};
    const Matrix there{{1, 0, -cx, 0, 1, -cy, 0, 0, 1}}, back{{1, 0, cx + k.right, 0, 1, cy + k.down, 0, 0, 1}};
    const double fill[3] = {a.number(first + 1), a.number(first + 2), a.number(first + 3)};
    return warp(a, image, inverse(product(back, product(turn, there)), a.where), e.height, e.width,
                static_cast<Inter>(a.integer(first)), fill);
}

// degrees, right and down as shares of the sizes, scale, shears, interpolation, fill
void run_affine(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        const Extent e = extent(image);
        return changed(a, image,
                       {a.number(0), a.number(1) * static_cast<double>(e.width),
                        a.number(2) * static_cast<double>(e.height), a.number(3), a.number(4), a.number(5)},
                       6);
    });
}

// right and down in pixels, interpolation, fill
void run_translate(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        return changed(a, image, {0, a.number(0), a.number(1), 1, 0, 0}, 2);
    });
}

// Ranges of the same
void run_random_affine(Row& row, const Arguments& a, RowDraws& draws) {
    double drawn[6];
    for (size_t i = 0; i < 6; ++i) drawn[i] = draws.between(a.number(2 * i), a.number(2 * i + 1));
    each_image(row, a, [&](const Tensor& image) {
        const Extent e = extent(image);
        return changed(a, image,
                       {drawn[0], std::round(drawn[1] * static_cast<double>(e.width)),
                        std::round(drawn[2] * static_cast<double>(e.height)), drawn[3], drawn[4], drawn[5]},
                       12);
    });
}

// The perspective that moves four points, x and y of each, to four others. Gaussian elimination with the largest pivot.
Matrix perspective(const double* from, const double* to, std::string_view where) {
    double rows[8][9] = {};
    for (int i = 0; i < 4; ++i) {
        const double x = from[2 * i], y = from[2 * i + 1], u = to[2 * i], v = to[2 * i + 1];
        const double first[9] = {x, y, 1, 0, 0, 0, -x * u, -y * u, u},
                     second[9] = {0, 0, 0, x, y, 1, -x * v, -y * v, v};
        std::copy_n(first, 9, rows[i]);
        std::copy_n(second, 9, rows[i + 4]);
    }
    for (int k = 0; k < 8; ++k) {
        int best = k;
        for (int i = k + 1; i < 8; ++i)
            if (std::abs(rows[i][k]) > std::abs(rows[best][k])) best = i;
        if (std::abs(rows[best][k]) < 1e-12)
            throw value_error(where, "three of the points lie on a line: they say no perspective");
        std::swap_ranges(rows[k], rows[k] + 9, rows[best]);
        for (int i = 0; i < 8; ++i) {
            if (i == k) continue;
            const double share = rows[i][k] / rows[k][k];
            for (int j = k; j < 9; ++j) rows[i][j] -= share * rows[k][j];
        }
    }
    Matrix m{};
    for (int k = 0; k < 8; ++k) m.m[k] = rows[k][8] / rows[k][k];
    m.m[8] = 1;
    return m;
}

constexpr double kBlack[3] = {0, 0, 0};

// interpolation, x and y of four points, of four others
void run_perspective(Row& row, const Arguments& a, RowDraws&) {
    const Matrix m = inverse(perspective(a.numbers.data() + 1, a.numbers.data() + 9, a.where), a.where);
    each_image(row, a, [&](const Tensor& image) {
        const Extent e = extent(image);
        return warp(a, image, m, e.height, e.width, static_cast<Inter>(a.integer(0)), kBlack);
    });
}

// distortion, probability, interpolation
void run_random_perspective(Row& row, const Arguments& a, RowDraws& draws) {
    if (!draws.chance(a.number(1))) return;
    const RowDraws before = draws;
    each_image(row, a, [&](const Tensor& image) {
        draws = before;
        const Extent e = extent(image);
        const auto w = static_cast<double>(e.width), h = static_cast<double>(e.height);
        const auto inward = [&](double size) {
            return static_cast<double>(draws.below(static_cast<int64_t>(a.number(0) * std::floor(size / 2)) + 1));
        };
        const double from[8] = {0, 0, w - 1, 0, w - 1, h - 1, 0, h - 1};
        double to[8];
        for (int i = 0; i < 4; ++i) {
            to[2 * i] = from[2 * i] == 0 ? inward(w) : from[2 * i] - inward(w);
            to[2 * i + 1] = from[2 * i + 1] == 0 ? inward(h) : from[2 * i + 1] - inward(h);
        }
        if (e.width < 2 || e.height < 2) return image;
        return warp(a, image, inverse(perspective(from, to, a.where), a.where), e.height, e.width,
                    static_cast<Inter>(a.integer(2)), kBlack);
    });
}

}  // namespace

Matrix inverse(const Matrix& matrix, std::string_view where) {
    const double* m = matrix.m;
    const double a = m[4] * m[8] - m[5] * m[7], b = m[5] * m[6] - m[3] * m[8], c = m[3] * m[7] - m[4] * m[6];
    const double det = m[0] * a + m[1] * b + m[2] * c;
    if (!(std::abs(det) > 1e-30)) throw value_error(where, "the image would have no area");
    const double d = 1 / det;
    return {{a * d, (m[2] * m[7] - m[1] * m[8]) * d, (m[1] * m[5] - m[2] * m[4]) * d, b * d,
             (m[0] * m[8] - m[2] * m[6]) * d, (m[2] * m[3] - m[0] * m[5]) * d, c * d, (m[1] * m[6] - m[0] * m[7]) * d,
             (m[0] * m[4] - m[1] * m[3]) * d}};
}

Tensor warp(const Arguments& a, const Tensor& image, const Matrix& output_to_input, int64_t height, int64_t width,
            Inter inter, const double* fill) {
    check_pixels(image, a.where);
    const Tensor out = empty_image(a, image, height, width);
    const Places places(output_to_input, inter == Inter::nearest);
    return for_pixels(image, [&](auto kind) {
        sample<decltype(kind)>(image, out, places, inter, fill);
        return out;
    });
}

}  // namespace lunaria::vision

namespace lunaria::transforms {

std::span<const Entry> warp_entries() {
    using namespace vision;
    static const Entry entries[] = {
        {"rotate", 9, run_rotate},
        {"random_rotation", 10, run_random_rotation},
        {"affine", 10, run_affine},
        {"translate", 6, run_translate},
        {"random_affine", 16, run_random_affine},
        {"perspective", 17, run_perspective},
        {"random_perspective", 3, run_random_perspective},
    };
    return entries;
}

}  // namespace lunaria::transforms
