#include <algorithm>
#include <cstring>
#include <limits>

#include "core/lite/runtime/loop_code.h"
#include "core/loops/small_product.h"
#include "core/loops/sum_order.h"

namespace lunaria::lite {

namespace {

using Operation = LoopOperation;
using graph::LoopOperand;

// Sums in the order of core/loops/sum_order.h, of numbers that are computed in float64.
template <class T>
void add_wide(const T* x, int64_t count, bool squares, RowSum& sum) {
    auto term = [&](int64_t i) {
        const double v = i < count ? static_cast<double>(x[i]) : 0.0;
        return squares ? v * v : v;
    };
    for (int64_t i = 0; i < count; i += kSumLeaf * kSumLanes) {
        for (int64_t lane = 0; lane < kSumLanes; ++lane) {
            const int64_t at = i + lane;
            sum.lanes[lane] +=
                (term(at) + term(at + kSumLanes)) + (term(at + 2 * kSumLanes) + term(at + 3 * kSumLanes));
        }
        sum.in_block += kSumLeaf * kSumLanes;
        if (sum.in_block < kSumBlock) continue;
        join_lanes(sum.lanes, kSumLanes, 1, [](double a, double b) { return a + b; });
        sum.total += sum.lanes[0];
        std::fill(std::begin(sum.lanes), std::end(sum.lanes), 0.0);
        sum.in_block = 0;
    }
}
double total_of(RowSum& sum) {
    join_lanes(sum.lanes, kSumLanes, 1, [](double a, double b) { return a + b; });
    return sum.total + sum.lanes[0];
}

class LoopRun {
  public:
    LoopRun(const LoopCode& code, void* const* operands, const LoopPart& part, char* scratch)
        : c_(code), operands_(operands), part_(part), scratch_(scratch), next_(scratch + code.tables) {
        registers_ = take<char*>(c_.values.size());
        rows_ = take<char*>(c_.operands.size() * static_cast<size_t>(c_.batch));
        offsets_ = take<int64_t>(c_.operands.size());
        points_ = take<int64_t>(c_.operands.size());
        index_ = take<int64_t>(c_.outer.size());
        point_ = take<int64_t>(c_.depth.size());
        align();
        accumulators_ = take<RowSum>(c_.accumulators.size() * static_cast<size_t>(c_.batch));
        align();
        sums_ = next_;
        for (size_t v = 0; v < c_.values.size(); ++v)
            registers_[v] = (c_.values[v].constant ? c_.constants : scratch_) + c_.values[v].offset;
        for (size_t k = 0; k < c_.operands.size(); ++k) points_[k] = 0;
    }

    void run() {
        if (!c_.sums.empty()) return run_sums();
        // Rows without elements have sums, and nothing else.
        if (part_.row_begin >= part_.row_end || (c_.inner == 0 && !c_.has_rows)) return;
        start_rows(part_.row_begin);
        for (int64_t row = part_.row_begin; row < part_.row_end; row += c_.batch)
            run_rows(std::min(c_.batch, part_.row_end - row));
    }

  private:
    template <class T>
    T* take(size_t count) {
        auto* const at = reinterpret_cast<T*>(next_);
        next_ += count * sizeof(T);
        return at;
    }
    void align() { next_ += (64 - reinterpret_cast<uintptr_t>(next_) % 64) % 64; }

    void start_rows(int64_t row) {
        for (size_t axis = c_.outer.size(); axis-- > 0;) {
            index_[axis] = row % c_.outer[axis];
            row /= c_.outer[axis];
        }
        for (size_t k = 0; k < c_.operands.size(); ++k) {
            offsets_[k] = 0;
            for (size_t axis = 0; axis < c_.outer.size(); ++axis)
                offsets_[k] += index_[axis] * c_.operands[k].strides[axis];
        }
    }
    void next_row() {
        for (size_t axis = c_.outer.size(); axis-- > 0;) {
            const bool wraps = ++index_[axis] == c_.outer[axis];
            for (size_t k = 0; k < c_.operands.size(); ++k)
                offsets_[k] +=
                    wraps ? c_.operands[k].strides[axis] * (1 - c_.outer[axis]) : c_.operands[k].strides[axis];
            if (!wraps) return;
            index_[axis] = 0;
        }
    }

    void run_rows(int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
            for (size_t k = 0; k < c_.operands.size(); ++k)
                rows_[k * static_cast<size_t>(c_.batch) + static_cast<size_t>(i)] =
                    static_cast<char*>(operands_[k]) + offsets_[k];
            next_row();
        }
        count_ = count;
        for (const LoopCode::Pass& pass : c_.passes) run_pass(pass);
    }

    void run_pass(const LoopCode::Pass& pass) {
        for (const Operation& o : pass.rows) run_operation(o);
        for (const uint16_t a : pass.reductions) start_reduction(a);
        if (!pass.elements.empty() || !pass.stores.empty()) {
            for (column_ = part_.column_begin; column_ < part_.column_end; column_ += c_.pitch) {
                width_ = std::min(c_.pitch, part_.column_end - column_);
                size_ = c_.batch > 1 ? count_ * c_.pitch : (width_ + kGroup - 1) / kGroup * kGroup;
                for (const Operation& o : pass.elements) run_operation(o);
                for (const Operation& o : pass.stores)
                    if (!o.row) run_operation(o);
            }
        }
        for (const Operation& o : pass.stores)
            if (o.row) run_operation(o);
        for (const uint16_t a : pass.reductions) end_reduction(a);
    }

    char* home(uint16_t value) const { return scratch_ + c_.values[value].offset; }
    char* row_of(uint16_t operand, int64_t i) const {
        return rows_[static_cast<size_t>(operand) * static_cast<size_t>(c_.batch) + static_cast<size_t>(i)] +
               points_[operand];
    }

    void run_operation(const Operation& o) {
        switch (o.kind) {
            case Operation::Kind::call: {
                const char* in[kMostArguments];
                for (int k = 0; k < o.arguments; ++k) in[k] = registers_[o.args[k]];
                registers_[o.out] = o.direct ? place_of(o) : home(o.out);
                const int64_t size = !o.row ? size_ : c_.batch == 1 ? kGroup : (count_ + kGroup - 1) / kGroup * kGroup;
                return o.run(in, o.step, registers_[o.out], size);
            }
            case Operation::Kind::load:
                return load(o);
            case Operation::Kind::load_row:
                return load_row(o);
            case Operation::Kind::spread:
                return spread(o);
            case Operation::Kind::product:
                return product(o);
            case Operation::Kind::points:
                return run_points(c_.points[o.index]);
            case Operation::Kind::reduce:
                return reduce(o);
            case Operation::Kind::store:
                return store(o);
            case Operation::Kind::store_row:
                return store_row(o);
            case Operation::Kind::add:
                return add_row(o);
        }
    }

    // Whether the block of an operand is neighbouring memory of whole groups.
    bool is_whole(uint16_t operand) const {
        if (c_.batch == 1) return width_ % kGroup == 0;
        return c_.inner == c_.pitch && c_.operands[operand].is_flat;
    }
    // Where a result can be written by the operation that computes it.
    char* place_of(const Operation& o) const {
        const size_t width = size_of(c_.operands[o.operand].dtype);
        if (!is_whole(o.operand)) return home(o.out);
        return row_of(o.operand, 0) + (c_.batch > 1 ? 0 : column_ * static_cast<int64_t>(width));
    }

    void load(const Operation& o) {
        const LoopCode::Operand& from = c_.operands[o.operand];
        const auto width = static_cast<int64_t>(size_of(o.dtype));
        const auto form = static_cast<int64_t>(width_of(c_.values[o.out].lane));
        const bool dense = from.wide == width;
        char* const to = registers_[o.out] = home(o.out);
        if (dense && is_same_in_memory(o.dtype) && o.dtype != DType::boolean && is_whole(o.operand)) {
            registers_[o.out] = row_of(o.operand, 0) + (c_.batch > 1 ? 0 : column_ * width);
            return;
        }
        const int64_t room = c_.batch > 1 ? c_.pitch : size_;
        for (int64_t i = 0; i < count_; ++i) {
            const char* x = row_of(o.operand, i) + column_ * from.wide;
            char* const here = to + i * room * form;
            if (dense)
                o.memory(x, here, width_);
            else if (from.wide == 0)
                fill(o, x, here, width_, form);
            else if (width == 4 && form == 4)
                for (int64_t j = 0; j < width_; ++j) std::memcpy(here + j * 4, x + j * from.wide, 4);
            else
                for (int64_t j = 0; j < width_; ++j) o.memory(x + j * from.wide, here + j * form, 1);
            std::memset(here + width_ * form, 0, static_cast<size_t>((room - width_) * form));
        }
    }
    static void fill(const Operation& o, const char* from, char* to, int64_t count, int64_t form) {
        if (count == 0) return;
        o.memory(from, to, 1);
        for (int64_t j = 1; j < count; ++j) std::memcpy(to + j * form, to, static_cast<size_t>(form));
    }
    void load_row(const Operation& o) {
        const auto form = static_cast<int64_t>(width_of(c_.values[o.out].lane));
        char* const to = registers_[o.out] = home(o.out);
        if (c_.batch == 1) return fill(o, row_of(o.operand, 0), to, kGroup, form);
        for (int64_t i = 0; i < count_; ++i) o.memory(row_of(o.operand, i), to + i * form, 1);
        std::memset(to + count_ * form, 0, static_cast<size_t>((c_.batch - count_) * form));
    }
    template <class T>
    void spread_as(const Operation& o) {
        const auto* const x = reinterpret_cast<const T*>(registers_[o.args[0]]);
        auto* const to = reinterpret_cast<T*>(registers_[o.out] = home(o.out));
        if (c_.batch == 1 || o.step[0] == 0) return std::fill(to, to + size_, x[0]), void();
        for (int64_t i = 0; i < count_; ++i) std::fill(to + i * c_.pitch, to + (i + 1) * c_.pitch, x[i]);
    }
    void spread(const Operation& o) {
        const size_t width = width_of(c_.values[o.out].lane);
        width == 1 ? spread_as<uint8_t>(o) : width == 4 ? spread_as<uint32_t>(o) : spread_as<uint64_t>(o);
    }

    void product(const Operation& o) {
        char* const to = registers_[o.out] = home(o.out);
        const auto width = static_cast<int64_t>(size_of(o.dtype));
        for (int64_t i = 0; i < count_; ++i) {
            const char *const a = row_of(o.operand, i), *const b = row_of(o.matrix, i) + column_ * width;
            char* const here = to + i * c_.pitch * width;
            if (o.dtype == DType::f32)
                blocks().rows.product(reinterpret_cast<const float*>(a), reinterpret_cast<const float*>(b), o.depth,
                                      o.stride, reinterpret_cast<float*>(here), width_);
            else
                product_twice(o, reinterpret_cast<const double*>(a), reinterpret_cast<const double*>(b),
                              reinterpret_cast<double*>(here));
        }
    }
    void product_twice(const Operation& o, const double* a, const double* b, double* to) const {
        for (int64_t j = 0; j < width_; ++j) {
            double sums[kProductSums] = {};
            for (int64_t k = 0; k < o.depth; ++k) sums[k % kProductSums] += a[k] * b[k * o.stride + j];
            to[j] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        }
    }

    void start_reduction(uint16_t a) {
        const Reduction r = c_.accumulators[a].reduction;
        for (int64_t i = 0; i < count_; ++i) {
            RowSum& sum = accumulators_[a * c_.batch + i] = {};
            if (r == Reduction::max) sum.total = -std::numeric_limits<double>::infinity();
            if (r == Reduction::min) sum.total = std::numeric_limits<double>::infinity();
        }
    }
    void reduce(const Operation& o) {
        const LoopCode::Accumulator& a = c_.accumulators[o.index];
        const char* const x = registers_[o.args[0]];
        for (int64_t i = 0; i < count_; ++i) {
            RowSum& sum = accumulators_[o.index * c_.batch + i];
            if (lane_of(a.operand) == Lane::twice) {
                reduce_twice(reinterpret_cast<const double*>(x) + i * c_.pitch, a.reduction, sum);
                continue;
            }
            const float* const row = reinterpret_cast<const float*>(x) + i * c_.pitch;
            if (a.reduction == Reduction::max) {
                sum.total = static_cast<double>(blocks().rows.largest(row, width_, static_cast<float>(sum.total)));
            } else if (a.reduction == Reduction::min) {
                sum.total = static_cast<double>(blocks().rows.smallest(row, width_, static_cast<float>(sum.total)));
            } else {
                const bool squares = a.reduction == Reduction::squares;
                const bool whole = column_ == 0 && width_ == c_.inner;
                blocks().rows.sum(row, width_, squares, sum);
                // If squares leave the range of f32, the sum is computed again.
                if (!squares || !whole || a.dtype != DType::f64) continue;
                RowSum copy = sum;
                if (total_of(copy) < std::numeric_limits<double>::infinity()) continue;
                sum = {};
                add_wide(row, width_, true, sum);
            }
        }
    }
    void reduce_twice(const double* x, Reduction r, RowSum& sum) const {
        if (r == Reduction::sum || r == Reduction::squares) return add_wide(x, width_, r == Reduction::squares, sum);
        for (int64_t j = 0; j < width_; ++j) {
            const double a = sum.total, b = x[j];
            const bool keeps = (r == Reduction::max ? a > b : a < b) || a != a;
            sum.total = keeps ? a : b;
        }
    }
    void end_reduction(uint16_t number) {
        const LoopCode::Accumulator& a = c_.accumulators[number];
        char* const to = registers_[a.out] = home(a.out);
        const bool sums = a.reduction == Reduction::sum || a.reduction == Reduction::squares;
        const int64_t copies = c_.batch == 1 ? kGroup : 1;
        for (int64_t i = 0; i < count_; ++i) {
            RowSum& sum = accumulators_[number * c_.batch + i];
            const double total = sums ? total_of(sum) : sum.total;
            for (int64_t k = 0; k < copies; ++k) put(a.dtype, to, i + k, total);
        }
        for (int64_t i = count_; c_.batch > 1 && i < c_.batch; ++i) put(a.dtype, to, i, 0);
    }
    static void put(DType t, char* to, int64_t i, double x) {
        if (t == DType::f64) {
            reinterpret_cast<double*>(to)[i] = x;
            return;
        }
        float v = static_cast<float>(x);
        if (t == DType::f16) v = Half(v);
        if (t == DType::bf16) v = BFloat16(v);
        reinterpret_cast<float*>(to)[i] = v;
    }

    void store(const Operation& o) {
        const LoopCode::Operand& to = c_.operands[o.operand];
        const auto width = static_cast<int64_t>(size_of(o.dtype));
        const auto form = static_cast<int64_t>(width_of(lane_of(o.dtype)));
        const char* const x = registers_[o.args[0]];
        const bool one = o.step[0] == 0;
        if (x == row_of(o.operand, 0) + column_ * to.wide && !one) return;  // it is there already
        for (int64_t i = 0; i < count_; ++i) {
            char* const here = row_of(o.operand, i) + column_ * to.wide;
            const char* const from = one ? x : x + i * c_.pitch * form;
            if (to.wide == width && !one)
                o.memory(from, here, width_);
            else
                for (int64_t j = 0; j < width_; ++j) o.memory(one ? from : from + j * form, here + j * to.wide, 1);
        }
    }
    void store_row(const Operation& o) {
        const auto form = static_cast<int64_t>(width_of(lane_of(o.dtype)));
        const MemoryFunction memory = storer_of(o.dtype);
        for (int64_t i = 0; i < count_; ++i)
            memory(registers_[o.args[0]] + (o.step[0] == 0 ? 0 : i * form), row_of(o.operand, i), 1);
    }

    // Points.
    void run_points(const LoopCode::Points& points) {
        const bool twice = lane_of(points.operand) == Lane::twice;
        const bool sums = points.reduction == Reduction::sum || points.reduction == Reduction::squares;
        char* const sum = scratch_ + points.sums;
        const bool in_double = twice || (sums && points.wide);
        const double infinity = std::numeric_limits<double>::infinity();
        const double start = sums ? 0 : points.reduction == Reduction::max ? -infinity : infinity;
        if (in_double)
            std::fill_n(reinterpret_cast<double*>(sum), size_, start);
        else
            std::fill_n(reinterpret_cast<float*>(sum), size_, static_cast<float>(start));
        bool empty = false;
        for (size_t axis = 0; axis < c_.depth.size(); ++axis) {
            point_[axis] = 0;
            empty |= c_.depth[axis] == 0;
        }
        if (!empty) {
            do {
                for (const Operation& o : points.code) run_operation(o);
                add_point(points, twice, sums, sum);
            } while (next_point());
        }
        for (size_t k = 0; k < c_.operands.size(); ++k) points_[k] = 0;
        char* const to = registers_[points.out] = home(points.out);
        for (int64_t j = 0; j < size_; ++j)
            put(points.dtype, to, j,
                in_double ? reinterpret_cast<double*>(sum)[j] : static_cast<double>(reinterpret_cast<float*>(sum)[j]));
    }
    bool next_point() {
        for (size_t axis = c_.depth.size(); axis-- > 0;) {
            const bool wraps = ++point_[axis] == c_.depth[axis];
            for (size_t k = 0; k < c_.operands.size(); ++k)
                points_[k] += wraps ? c_.operands[k].points[axis] * (1 - c_.depth[axis]) : c_.operands[k].points[axis];
            if (!wraps) return true;
            point_[axis] = 0;
        }
        return false;
    }
    template <class T>
    void better(const T* x, T* best, bool larger) const {
        for (int64_t j = 0; j < size_; ++j)
            best[j] = (larger ? best[j] > x[j] : best[j] < x[j]) || best[j] != best[j] ? best[j] : x[j];
    }
    void add_point(const LoopCode::Points& points, bool twice, bool sums, char* sum) const {
        const char* const x = registers_[points.arg];
        if (!sums) {
            const bool larger = points.reduction == Reduction::max;
            if (twice)
                better(reinterpret_cast<const double*>(x), reinterpret_cast<double*>(sum), larger);
            else
                better(reinterpret_cast<const float*>(x), reinterpret_cast<float*>(sum), larger);
        } else if (twice) {
            for (int64_t j = 0; j < size_; ++j)
                reinterpret_cast<double*>(sum)[j] += reinterpret_cast<const double*>(x)[j];
        } else if (points.wide) {
            blocks().rows.add_points(reinterpret_cast<const float*>(x), reinterpret_cast<double*>(sum), size_);
        } else {
            blocks().rows.add_points_single(reinterpret_cast<const float*>(x), reinterpret_cast<float*>(sum), size_);
        }
    }

    // Sums of rows: a leaf of four rows in their own dtype, blocks of kSumRows rows in float64.
    double* sum_memory(size_t sum, int which) const {
        return reinterpret_cast<double*>(sums_) + (static_cast<int64_t>(sum) * 4 + which) * (c_.inner + 8);
    }
    void run_sums() {
        for (size_t s = 0; s < c_.sums.size(); ++s) std::fill_n(sum_memory(s, 3), c_.inner, 0.0);
        if (c_.rows > 0) start_rows(0);
        for (int64_t row = 0; row < c_.rows; ++row) {
            row_ = row % kSumRows;
            if (row_ == 0)
                for (size_t s = 0; s < c_.sums.size(); ++s) std::fill_n(sum_memory(s, 2), c_.inner, 0.0);
            run_rows(1);
            if (row_ == kSumRows - 1 || row == c_.rows - 1)
                for (size_t s = 0; s < c_.sums.size(); ++s) end_rows(s, (row_ + 1) % kSumLeaf);
        }
        for (size_t s = 0; s < c_.sums.size(); ++s) {
            char* const to = static_cast<char*>(operands_[c_.sums[s].operand]);
            for (int64_t j = part_.column_begin; j < part_.column_end; ++j) {
                const double x = sum_memory(s, 3)[j];
                if (c_.sums[s].dtype == DType::f32)
                    reinterpret_cast<float*>(to)[j] = static_cast<float>(x);
                else
                    reinterpret_cast<double*>(to)[j] = x;
            }
        }
    }
    template <class T>
    void add_row_as(const T* x, size_t sum) {
        auto *const single = reinterpret_cast<T*>(sum_memory(sum, 0)), *const pair =
                                                                           reinterpret_cast<T*>(sum_memory(sum, 1));
        double* const total = sum_memory(sum, 2);
        for (int64_t j = 0; j < width_; ++j) {
            const int64_t at = column_ + j;
            switch (row_ % kSumLeaf) {
                case 0:
                case 2:
                    single[at] = x[j];
                    break;
                case 1:
                    pair[at] = single[at] + x[j];
                    break;
                default:
                    total[at] += static_cast<double>(pair[at] + (single[at] + x[j]));
            }
        }
    }
    void add_row(const Operation& o) {
        const char* const x = registers_[o.args[0]];
        if (o.dtype == DType::f32)
            add_row_as(reinterpret_cast<const float*>(x), o.index);
        else
            add_row_as(reinterpret_cast<const double*>(x), o.index);
    }
    template <class T>
    void end_rows_as(size_t sum, int64_t rest) {
        const auto *const single = reinterpret_cast<T*>(sum_memory(sum, 0)), *const pair = reinterpret_cast<T*>(
                                                                                 sum_memory(sum, 1));
        double *const total = sum_memory(sum, 2), *const all = sum_memory(sum, 3);
        for (int64_t j = part_.column_begin; j < part_.column_end; ++j) {
            if (rest > 0)
                total[j] += static_cast<double>(rest == 1 ? single[j] : rest == 2 ? pair[j] : pair[j] + single[j]);
            all[j] += total[j];
        }
    }
    void end_rows(size_t sum, int64_t rest) {
        c_.sums[sum].dtype == DType::f32 ? end_rows_as<float>(sum, rest) : end_rows_as<double>(sum, rest);
    }

    const LoopCode& c_;
    void* const* const operands_;
    const LoopPart part_;
    char *const scratch_, *next_;
    char** registers_ = nullptr;  // of values
    char** rows_ = nullptr;       // addresses of the rows of a block, by operand
    int64_t* offsets_ = nullptr;  // of the next row, by operand
    int64_t* points_ = nullptr;   // distance of the current point, by operand
    int64_t* index_ = nullptr;    // of the next row along the outer axes
    int64_t* point_ = nullptr;    // of the current point along the axes of the depth
    RowSum* accumulators_ = nullptr;
    char* sums_ = nullptr;
    int64_t count_ = 1;   // rows of the current block
    int64_t column_ = 0;  // its first
    int64_t width_ = 0;   // elements of each row
    int64_t size_ = 0;    // of its registers
    int64_t row_ = 0;     // of a sum of rows, within its block
};

}  // namespace

void run_loop(const LoopCode& code, void* const* operands, const LoopPart& part, char* scratch) {
    LoopRun(code, operands, part, scratch).run();
}

}  // namespace lunaria::lite
