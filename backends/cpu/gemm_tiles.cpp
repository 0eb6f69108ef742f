// The partition of a matrix product: panels of a few vectors of columns, whose rows of b are copied together where they
// are far apart in memory, and blocks of rows within a panel where there are too few panels for the threads. a is read
// in place. A panel's part of b stays in the nearest cache while all rows of a go over it.
#include "backends/cpu/gemm_tiles.h"

#include <algorithm>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/simd/gemm_loops.h"
#include "core/base/interrupt.h"
#include "core/base/visit.h"
#include "core/tensor/tensor.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

const GemmTable& gemm_table() {
    switch (current_isa()) {
        case Isa::avx512:
            return avx512::gemm_table;
        case Isa::avx2:
            return avx2::gemm_table;
        default:
            return v2::gemm_table;
    }
}

namespace {

// The number of rows of b that are processed at a time, and the bytes of a packed panel of them.
constexpr int64_t kDepth = 384;
constexpr int64_t kPanelBytes = kDepth * 256;

// With so few rows of a, every element of b is used too rarely to be worth reordering.
constexpr int64_t kStreamRows = 2, kStreamDepth = 32;

// So many multiplications are never worth a second thread.
constexpr int64_t kAlone = 300000;

// So many elements of b are never worth a second thread where each is used once or twice: reading them from memory or a
// far cache takes longer than multiplying them.
constexpr int64_t kAloneStreamed = 98304;

// Bytes of a that stay in a core's own cache beside a panel of b.
constexpr int64_t kNear = 1280 << 10;

// With fewer rows of a, a copy of b costs more than it saves, unless its rows are short vectors.
constexpr int64_t kPackRows = 24;

// With fewer rows of a, a copy of a b that is stored by columns costs more than it saves.
constexpr int64_t kRowsThatPay = 12;

// Rows of a strip: whole tiles of every height, and no more than a line or two of the cache.
constexpr int64_t kStrip = 24;

// The dtype of a tensor that holds elements of T.
template <class T>
constexpr DType dtype_like() {
    if constexpr (std::is_floating_point_v<T>)
        return dtype_of<T>();
    else
        return sizeof(T) == 2 ? DType::i16 : sizeof(T) == 4 ? DType::i32 : DType::i64;
}

template <class T>
class TileProduct {
  public:
    TileProduct(const MatrixRef<T>& a, const MatrixRef<T>& b, SumOf<T>* c, bool add, const Epilogue<T>& after)
        : loops_(gemm_loops<T>()), a_(a), b_(b), c_(c), add_(add), after_(after) {
        streams_ = a.rows <= kStreamRows;
        packs_ = b.column_stride != 1 || (a.rows >= kPackRows && b.row_stride > 2 * loops_.panel);
        width_ = packs_ ? loops_.panel : 2 * loops_.panel;
        // Steps of roughly equal depth.
        const int64_t steps = b.rows <= kDepth ? 1 : (b.rows + kDepth - 1) / kDepth;
        depth_ = steps == 1 ? b.rows : (b.rows + steps - 1) / steps;
        if (streams_) {
            // Here reading b is all the work: it is read along its rows, a few of them side by side.
            const int64_t share = (b.columns + num_threads() - 1) / num_threads();
            width_ = (share + width_ - 1) / width_ * width_;
            depth_ = kStreamDepth;
        }
        panels_ = b.columns <= width_ ? 1 : (b.columns + width_ - 1) / width_;
    }

    TileProduct(const MatrixRef<T>& a, const PackedMatrix<T>& b, SumOf<T>* c, const Epilogue<T>& after)
        : loops_(gemm_loops<T>()),
          a_(a),
          b_{b.memory.template data<T>(), b.rows, b.columns, 0, 1},
          c_(c),
          add_(false),
          after_(after),
          packs_(false),
          is_packed_(true),
          streams_(a.rows <= kStreamRows),
          backwards_(streams_ && b.turn()),
          width_(b.width),
          panels_((b.columns + b.width - 1) / b.width) {
        const int64_t steps = streams_ ? 1 : (b.rows + kDepth - 1) / kDepth;
        depth_ = (b.rows + steps - 1) / steps;
    }

    void run() {
        if (streams_ && is_packed_) return run_streamed();
        // Few panels are cut into blocks of rows, so that all threads have about the same work.
        const int64_t products = a_.rows * b_.rows * b_.columns;
        if (products <= kAlone) return multiply_panels(0, panels_);
        const int64_t threads = num_threads();
        if (panels_ < threads && width_ > loops_.panel && a_.rows > kStreamRows && !is_packed_) {
            width_ = loops_.panel;
            panels_ = (b_.columns + width_ - 1) / width_;
        }
        blocks_ = panels_ >= 8 * threads ? 1 : std::clamp<int64_t>(8 * threads / panels_, 1, (a_.rows + 23) / 24);
        const int64_t rows = (a_.rows + blocks_ - 1) / blocks_;
        // In additions, of which a vector does many at a time; an element from memory costs as much as several.
        const int64_t width = std::min(width_, b_.columns), cost = rows * b_.rows * width / 10 + b_.rows * width;
        constexpr int64_t kWorthwhile = 98304;
        parallel_for(panels_ * blocks_, std::max<int64_t>((kWorthwhile + cost / 2) / std::max<int64_t>(cost, 1), 1),
                     [this](int64_t begin, int64_t end) { multiply_panels(begin, end); });
    }

  private:
    // Each thread has its own columns, whose part of b stays in its own cache as far as there is room.
    void run_streamed() {
        const int64_t threads = b_.rows * b_.columns <= kAloneStreamed ? 1 : std::min<int64_t>(num_threads(), panels_);
        parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
            for (int64_t share = begin; share < end; ++share) {
                const int64_t first = panels_ * share / threads, behind = panels_ * (share + 1) / threads;
                for (int64_t i = 0; i < behind - first; ++i) {
                    poll_interrupt();
                    const int64_t panel = backwards_ ? behind - 1 - i : first + i;
                    multiply(panel * width_, rows_of(0, a_.rows, 0), 0, 0);
                }
            }
        });
    }

    // Blocks are counted panel by panel.
    void multiply_panels(int64_t begin, int64_t end) const {
        if (blocks_ == 1 && a_.rows * b_.rows * static_cast<int64_t>(sizeof(T)) > kNear)
            return multiply_far(begin, end);
        for (int64_t at = begin; at < end;) {
            const int64_t panel = at / blocks_, last = std::min((panel + 1) * blocks_, end);
            const int64_t first = at - panel * blocks_, behind = last - panel * blocks_;
            for (int64_t k = 0; k < b_.rows; k += depth_)
                multiply(panel * width_, rows_of(a_.rows * first / blocks_, a_.rows * behind / blocks_, k),
                         a_.rows * first / blocks_, k);
            at = last;
        }
    }

    // Where a is too large for a core's own cache, each part of it that does fit goes over all panels before the next.
    // It is copied first: rows a power of two apart would evict each other, as would the columns of a matrix stored by
    // columns. Of the latter a few rows side by side make a strip, which is read from begin to end.
    void multiply_far(int64_t begin, int64_t end) const {
        const int64_t most = std::max<int64_t>(kNear / (depth_ * static_cast<int64_t>(sizeof(T))), 24);
        const int64_t parts = (a_.rows + most - 1) / most;
        // One cache line more than the row.
        const int64_t row = depth_ + 64 / static_cast<int64_t>(sizeof(T));
        const bool in_strips = a_.row_stride == 1 && a_.column_stride >= kStrip;
        const int64_t rows_of_part = (a_.rows + parts - 1) / parts;
        const Tensor copy = Tensor::empty(dtype_like<T>(), {(rows_of_part + kStrip - 1) / kStrip * kStrip, row});
        for (int64_t part = 0; part < parts; ++part) {
            const int64_t first = a_.rows * part / parts, behind = a_.rows * (part + 1) / parts;
            for (int64_t k = 0; k < b_.rows; k += depth_) {
                const int64_t depth = std::min(depth_, b_.rows - k);
                T* to = copy.data<T>();
                if (in_strips) {
                    copy_strips(a_.data + first + k * a_.column_stride, behind - first, depth, to);
                    const MatrixRef<T> strips{to, behind - first, depth, 1, kStrip};
                    for (int64_t panel = begin; panel < end; ++panel) {
                        poll_interrupt();
                        multiply(panel * width_, strips, first, k, true);
                    }
                    continue;
                }
                for (int64_t i = first; i < behind; ++i, to += row) {
                    const T* from = a_.data + i * a_.row_stride + k * a_.column_stride;
                    if (a_.column_stride == 1)
                        std::copy_n(from, depth, to);
                    else
                        for (int64_t j = 0; j < depth; ++j) to[j] = from[j * a_.column_stride];
                }
                const MatrixRef<T> rows{copy.data<T>(), behind - first, depth, row, 1};
                for (int64_t panel = begin; panel < end; ++panel) {
                    poll_interrupt();
                    multiply(panel * width_, rows, first, k);
                }
            }
        }
    }

    // The rows of a strip side by side, column after column; the last strip may end early.
    void copy_strips(const T* from, int64_t rows, int64_t depth, T* to) const {
        for (int64_t i = 0; i < rows; i += kStrip) {
            const int64_t count = std::min(kStrip, rows - i);
            for (int64_t j = 0; j < depth; ++j, to += kStrip) {
                const T* column = from + i + j * a_.column_stride;
                if (count == kStrip)
                    std::copy_n(column, kStrip, to);
                else
                    std::copy_n(column, count, to);
            }
        }
    }

    // Computes the columns of a panel in some rows of c, for the step that begins at row k of b. `in_strips`: a is a
    // copy in strips.
    void multiply(int64_t column, const MatrixRef<T>& a, int64_t first_row, int64_t k, bool in_strips = false) const {
        const int64_t columns = std::min(width_, b_.columns - column), rows = a.rows, depth = a.columns;
        const bool ends = k + depth >= b_.rows;
        const SumOf<T>* bias = after_.bias && ends ? after_.bias + column : nullptr;
        // The few rows of a stream give the same bits in several steps as in one, where b is packed.
        const Onto onto = k > 0 ? (streams_ ? Onto::begun : Onto::added) : add_ ? Onto::added : Onto::nothing;
        const int64_t step = in_strips ? kStrip : rows;
        auto multiply_by = [&](int64_t width, const T* b, int64_t b_row, SumOf<T>* c, const SumOf<T>* from) {
            for (int64_t i = 0; i < rows; i += step)
                loops_.multiply(std::min(step, rows - i), width, depth, a.data + i * depth, a.row_stride,
                                a.column_stride, b, b_row, c + i * b_.columns, b_.columns, onto, from);
            if (after_.relu && ends) loops_.finish(c, rows, width, b_.columns, nullptr, true);
        };
        SumOf<T>* c = c_ + first_row * b_.columns + column;
        if (is_packed_) {
            const int64_t row = loops_.whole(columns);
            return multiply_by(columns, b_.data + column * b_.rows + k * row, row, c, bias);
        }
        alignas(64) T packed[kPanelBytes / sizeof(T)];
        // Vectors are read whole: the remainder of a row of b is copied, in one more step.
        const int64_t whole = packs_ ? 0 : columns / loops_.lanes * loops_.lanes, rest = columns - whole;
        const int64_t padded = loops_.whole(rest);
        const T* b = b_.data + k * b_.row_stride + column * b_.column_stride;
        if (whole) multiply_by(whole, b, b_.row_stride, c, bias);
        if (!rest) return;
        loops_.pack(b + whole * b_.column_stride, b_.row_stride, b_.column_stride, depth, rest, packed);
        multiply_by(rest, packed, padded, c + whole, bias ? bias + whole : nullptr);
    }

    // The part of some rows of a for the step that begins at row k of b.
    MatrixRef<T> rows_of(int64_t first, int64_t behind, int64_t k) const {
        return {a_.data + first * a_.row_stride + k * a_.column_stride, behind - first, std::min(depth_, b_.rows - k),
                a_.row_stride, a_.column_stride};
    }

    const GemmLoops<T>& loops_;
    MatrixRef<T> a_, b_;
    SumOf<T>* c_;
    bool add_;
    Epilogue<T> after_;
    bool packs_, is_packed_ = false, streams_ = false, backwards_ = false;
    int64_t width_, panels_, depth_, blocks_ = 1;
};

template <class T>
MatrixRef<T> dense_copy(const MatrixRef<T>& m, Tensor& storage) {
    storage = Tensor::empty(dtype_like<T>(), {m.rows, m.columns});
    T* const to = storage.data<T>();
    for (int64_t i = 0; i < m.rows; ++i)
        for (int64_t j = 0; j < m.columns; ++j) to[i * m.columns + j] = m.data[i * m.row_stride + j * m.column_stride];
    return {to, m.rows, m.columns, m.columns, 1};
}

// Each thread has its own columns where there are few rows, and otherwise its own rows.
template <class T>
class DotProduct {
  public:
    DotProduct(const MatrixRef<T>& a, const MatrixRef<T>& b, T* c, const Epilogue<T>& after)
        : a_(a.column_stride == 1 ? a : dense_copy(a, storage_)), b_(b), columns_(b.columns), c_(c), after_(after) {}

    // With `backwards`, from the last column to the first.
    void run(bool backwards) const {
        const int64_t row = a_.columns * columns_;
        if (row * a_.rows <= kAlone && row <= kAloneStreamed) return part(0, a_.rows, 0, columns_);
        if (a_.rows >= kRowsThatPay) return run_rows();
        // The number of a result's elements on a line that threads do not share, and of b's elements between two looks
        // for an interrupt.
        constexpr int64_t kLine = 16, kBetween = int64_t{1} << 18;
        const int64_t step = std::max(kBetween / a_.columns / kLine * kLine, kLine);
        parallel_for(columns_, kAloneStreamed / a_.columns + 1, kLine, [&](int64_t begin, int64_t end) {
            const int64_t steps = (end - begin + step - 1) / step;
            for (int64_t i = 0; i < steps; ++i) {
                poll_interrupt();
                const int64_t column = begin + (backwards ? steps - 1 - i : i) * step;
                part(0, a_.rows, column, std::min(step, end - column));
            }
        });
    }

  private:
    // So many rows at a time that they stay in a core's own cache while all columns go over them.
    void run_rows() const {
        const int64_t step = std::clamp<int64_t>(kNear / 4 / static_cast<int64_t>(sizeof(T)) / a_.columns, 4, 1024);
        parallel_for(a_.rows, kAlone / (a_.columns * columns_) + 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i += step) {
                poll_interrupt();
                part(i, std::min(step, end - i), 0, columns_);
            }
        });
    }

    void part(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
        const GemmLoops<T>& loops = gemm_loops<T>();
        T* const to = c_ + row * columns_ + column;
        loops.dots(rows, columns, a_.columns, a_.data + row * a_.row_stride, a_.row_stride,
                   b_.data + column * b_.column_stride, b_.column_stride, to, columns_);
        if (after_.bias || after_.relu)
            loops.finish(to, rows, columns, columns_, after_.bias ? after_.bias + column : nullptr, after_.relu);
    }

    Tensor storage_;
    const MatrixRef<T> a_;
    const MatrixRef<T> b_;
    const int64_t columns_;
    T* c_;
    const Epilogue<T> after_;
};

}  // namespace

template <class T>
Way way_of(const MatrixRef<T>& a, const MatrixRef<T>& b, double most) {
    if (a.rows < 1 || a.columns < 1 || b.columns < 2) return Way::library;
    const double products =
        static_cast<double>(a.rows) * static_cast<double>(a.columns) * static_cast<double>(b.columns);
    // A transposing copy needs enough rows of a to pay, and vectors that it can fill.
    if (b.column_stride != 1 && (a.rows < kRowsThatPay || b.columns < 2 * gemm_loops<T>().lanes)) {
        const bool fits = b.row_stride == 1 && (a.column_stride == 1 || a.rows < kRowsThatPay);
        return fits && (products <= most || a.rows < kRowsThatPay) ? Way::dots : Way::library;
    }
    return products <= most ? Way::tiles : Way::library;
}

template <class T>
bool tile_product(const MatrixRef<T>& a, const MatrixRef<T>& b, SumOf<T>* c, bool add, const Epilogue<T>& after,
                  double most) {
    const Way way = way_of(a, b, most);
    if (way == Way::library || (add && way == Way::dots)) return false;
    if (way == Way::dots) {
        DotProduct<T>(a, b, c, after).run(false);
        return true;
    }
    const GemmLoops<T>& loops = gemm_loops<T>();
    // The smallest products are a single panel that is read in place.
    if (a.rows > kStreamRows && a.rows <= kAlone && b.column_stride == 1 && b.columns <= 2 * loops.panel &&
        b.columns % loops.lanes == 0 && b.rows <= kDepth && (a.rows < kPackRows || b.row_stride <= 2 * loops.panel) &&
        a.rows * b.rows * b.columns <= kAlone) {
        loops.multiply(a.rows, b.columns, b.rows, a.data, a.row_stride, a.column_stride, b.data, b.row_stride, c,
                       b.columns, add ? Onto::added : Onto::nothing, after.bias);
        if (after.relu) loops.finish(c, a.rows, b.columns, b.columns, nullptr, true);
        return true;
    }
    TileProduct<T>(a, b, c, add, after).run();
    return true;
}

namespace {

// Calls f(some rows of a, the first of them), with safe points between blocks of some hundredths of a second for each
// thread; `row`: the number of products for a row of the result.
template <class T, class F>
void in_row_blocks(const MatrixRef<T>& a, int64_t row, F f) {
    constexpr int64_t kMostProducts = int64_t{1} << 32;
    const int64_t together = std::max(kMostProducts * num_threads() / std::max<int64_t>(row, 1), kStrip);
    for (int64_t i = 0; i < a.rows; i += together) {
        if (i > 0) safe_point();
        f({a.data + i * a.row_stride, std::min(together, a.rows - i), a.columns, a.row_stride, a.column_stride}, i);
    }
}

}  // namespace

template <class T>
void own_product(const MatrixRef<T>& a, const MatrixRef<T>& given, SumOf<T>* c, bool add) {
    MatrixRef<T> b = given;
    Tensor storage;
    // For a single column the stride has no meaning.
    if (b.columns == 1) b.column_stride = 1;
    if (b.column_stride != 1 && a.rows < kPackRows) b = dense_copy(b, storage);
    in_row_blocks(a, b.rows * b.columns, [&](const MatrixRef<T>& rows, int64_t first) {
        TileProduct<T>(rows, b, c + first * b.columns, add, {}).run();
    });
}

void packed_own_product(const MatrixRef<Bf16Pair>& a, const PackedMatrix<Bf16Pair>& b, float* c) {
    in_row_blocks(a, b.rows * b.columns, [&](const MatrixRef<Bf16Pair>& rows, int64_t first) {
        TileProduct<Bf16Pair>(rows, b, c + first * b.columns, {}).run();
    });
}

bool has_bf16_products() {
    static const bool processor = __builtin_cpu_supports("avx512bf16");
    return processor && gemm_table().bf16.multiply;
}

template <class T>
bool is_worth_packing(const MatrixRef<T>& a, const MatrixRef<T>& b) {
    // With more rows, reordering b each time costs nothing compared with the product.
    constexpr int64_t kManyRows = 512;
    return a.rows <= kManyRows && way_of(a, b) != Way::library;
}

template <class T>
PackedMatrix<T> pack_matrix(const MatrixRef<T>& a, const MatrixRef<T>& b) {
    const GemmLoops<T>& loops = gemm_loops<T>();
    PackedMatrix<T> packed{b.rows, b.columns, a.rows <= kStreamRows ? loops.strip : loops.panel, {}, way_of(a, b), {}};
    if (packed.way == Way::dots) {
        packed.lying = b;
        return packed;
    }
    packed.memory = Tensor::empty(dtype_of<T>(), {b.rows, loops.whole(b.columns)});
    for (int64_t column = 0; column < b.columns; column += packed.width)
        loops.pack(b.data + column * b.column_stride, b.row_stride, b.column_stride, b.rows,
                   std::min(packed.width, b.columns - column), packed.memory.template data<T>() + column * b.rows);
    return packed;
}

template <class T>
void packed_product(const MatrixRef<T>& a, const PackedMatrix<T>& b, SumOf<T>* c, const Epilogue<T>& after) {
    if (b.way == Way::dots)
        DotProduct<T>(a, b.lying, c, after).run(a.rows <= kStreamRows && b.turn());
    else
        TileProduct<T>(a, b, c, after).run();
}

template <class T>
void cut_negatives(T* c, int64_t n) {
    parallel_for(n, kThreadWork, [&](int64_t begin, int64_t end) {
        gemm_loops<T>().finish(c + begin, 1, end - begin, end - begin, nullptr, true);
    });
}

template <class T>
void finish_rows(T* c, int64_t rows, int64_t columns, const Epilogue<T>& after) {
    parallel_for(rows, kThreadWork / std::max<int64_t>(columns, 1) + 1, [&](int64_t begin, int64_t end) {
        gemm_loops<T>().finish(c + begin * columns, end - begin, columns, columns, after.bias, after.relu);
    });
}

const void* packing() { return &gemm_table(); }

template bool tile_product<float>(const MatrixRef<float>&, const MatrixRef<float>&, float*, bool,
                                  const Epilogue<float>&, double);
template bool tile_product<double>(const MatrixRef<double>&, const MatrixRef<double>&, double*, bool,
                                   const Epilogue<double>&, double);
template bool is_worth_packing<float>(const MatrixRef<float>&, const MatrixRef<float>&);
template bool is_worth_packing<double>(const MatrixRef<double>&, const MatrixRef<double>&);
template PackedMatrix<float> pack_matrix<float>(const MatrixRef<float>&, const MatrixRef<float>&);
template PackedMatrix<double> pack_matrix<double>(const MatrixRef<double>&, const MatrixRef<double>&);
template void packed_product<float>(const MatrixRef<float>&, const PackedMatrix<float>&, float*,
                                    const Epilogue<float>&);
template void packed_product<double>(const MatrixRef<double>&, const PackedMatrix<double>&, double*,
                                     const Epilogue<double>&);
template void cut_negatives<float>(float*, int64_t);
template void cut_negatives<double>(double*, int64_t);
template void finish_rows<float>(float*, int64_t, int64_t, const Epilogue<float>&);
template void finish_rows<double>(double*, int64_t, int64_t, const Epilogue<double>&);
template void finish_rows<uint16_t>(uint16_t*, int64_t, int64_t, const Epilogue<uint16_t>&);
template void finish_rows<uint32_t>(uint32_t*, int64_t, int64_t, const Epilogue<uint32_t>&);
template void finish_rows<uint64_t>(uint64_t*, int64_t, int64_t, const Epilogue<uint64_t>&);
template void own_product<uint16_t>(const MatrixRef<uint16_t>&, const MatrixRef<uint16_t>&, uint16_t*, bool);
template void own_product<uint32_t>(const MatrixRef<uint32_t>&, const MatrixRef<uint32_t>&, uint32_t*, bool);
template void own_product<uint64_t>(const MatrixRef<uint64_t>&, const MatrixRef<uint64_t>&, uint64_t*, bool);
template void own_product<Bf16Pair>(const MatrixRef<Bf16Pair>&, const MatrixRef<Bf16Pair>&, float*, bool);

}  // namespace lunaria::cpu
