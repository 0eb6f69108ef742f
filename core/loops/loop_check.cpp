#include "core/loops/loop_check.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/tensor/shape.h"

namespace lunaria::graph {

namespace {

using Kind = LoopInstruction::Kind;

// The instruction that adds rows to an operand; null where there is none.
const LoopInstruction* add_to(const LoopProgram& program, size_t operand) {
    for (const LoopInstruction& i : program.code)
        if (i.kind == Kind::add && i.index == operand) return &i;
    return nullptr;
}

bool is_computed(DType t) { return is_float(t) || is_integer(t) || t == DType::boolean; }

class LoopCheck {
  public:
    LoopCheck(const LoopTask& task, std::span<const size_t> bytes) : task_(task), p_(*task.program), bytes_(bytes) {}

    std::string run() {
        check_form();
        if (fault_.empty()) check_sizes();
        if (fault_.empty()) check_operands();
        for (at_ = 0; fault_.empty() && at_ < p_.code.size(); ++at_) check(p_.code[at_]);
        for (size_t k = 0; fault_.empty() && k < p_.operands.size(); ++k)
            demand(!p_.operands[k].written || writes_[k] == 1, "a result is not written once");
        if (fault_.empty()) check_memory();
        return fault_;
    }

  private:
    void demand(bool holds, std::string_view otherwise) {
        if (!holds && fault_.empty()) fault_ = str("instruction ", at_, " of a loop: ", otherwise);
    }

    void check_form() {
        demand(p_.outer_rank >= 0 && p_.outer_rank <= kMaxRank && p_.depth.size() <= kMaxRank,
               "there are too many axes");
        demand(p_.operands.size() == bytes_.size() && p_.operands.size() == task_.offsets.size() &&
                   p_.operands.size() <= 4000 && p_.code.size() <= 4000,
               "the number of operands is wrong");
        demand(p_.tile == 1 || (!p_.depth.empty() && (p_.tile == 2 || p_.tile == 4)), "the tile is wrong");
        demand(p_.depth.empty() || (!p_.has_rows && !p_.has_sums), "values of rows stand beside points");
        demand(!p_.streams || (p_.depth.empty() && !p_.has_rows && !p_.has_sums && p_.outer_rank == 0),
               "results do not stream");
    }

    void check_sizes() {
        const auto outer = static_cast<size_t>(p_.outer_rank);
        size_t count = p_.first_stride();
        for (size_t k = 0; k < p_.operands.size(); ++k) count += p_.count_of_strides(k);
        demand(task_.sizes.size() == count, "the number of sizes is wrong");
        if (!fault_.empty()) return;
        int64_t rows = 1;
        for (size_t i = 0; i < p_.first_stride(); ++i) {
            const int64_t size = task_.sizes[i];
            demand(size >= 0 && size < kMost && (i >= outer || !__builtin_mul_overflow(rows, size, &rows)),
                   "a size is too large");
            if (i > outer) demand(p_.depth[i - outer - 1] == 0 || p_.depth[i - outer - 1] == size, "a depth is wrong");
        }
        demand(task_.rows == rows && task_.inner == task_.sizes[outer], "the rows are not those of the sizes");
    }

    void check_operands() {
        writes_.assign(p_.operands.size(), 0);
        for (size_t k = 0; k < p_.operands.size(); ++k) {
            const LoopOperand& o = p_.operands[k];
            demand(is_computed(o.dtype) && task_.offsets[k] % size_of(dtype_in_memory(p_, k)) == 0,
                   "an operand has a wrong dtype");
            demand(!p_.streams || !o.written || (o.step == LoopOperand::Step::dense && task_.offsets[k] % 64 == 0),
                   "results do not stream");
        }
    }

    const LoopInstruction& arg(const LoopInstruction& i, size_t k) const { return p_.code[i.args[k]]; }
    bool all_args(const LoopInstruction& i, bool LoopInstruction::*flag) const {
        return std::ranges::all_of(i.args, [&](uint16_t a) { return p_.code[a].*flag; });
    }
    bool any_arg(const LoopInstruction& i, bool LoopInstruction::*flag) const {
        return std::ranges::any_of(i.args, [&](uint16_t a) { return p_.code[a].*flag; });
    }

    void check(const LoopInstruction& i) {
        for (uint16_t a : i.args) {
            demand(a < at_, "a value is used before it is made");
            if (!fault_.empty()) return;
            demand(p_.code[a].kind != Kind::store && p_.code[a].kind != Kind::add, "what is used is no value");
        }
        static constexpr int kAny = -1;
        static constexpr std::array kArgs{0, 1, 1, 0, kAny, 1, 1, 0};
        const int wanted = kArgs.at(static_cast<size_t>(i.kind));
        demand(wanted == kAny || i.args.size() == static_cast<size_t>(wanted), "the number of operands is wrong");
        demand(is_computed(i.dtype) && is_computed(i.operand), "it has a wrong dtype");
        demand(!i.point || !p_.depth.empty(), "there are no points");
        demand(!i.point || !i.row, "a value of a row is none of a point");
        const bool has_operand =
            i.kind == Kind::load || i.kind == Kind::store || i.kind == Kind::add || i.kind == Kind::product;
        demand(!has_operand || i.index < p_.operands.size(), "there is no such operand");
        if (!fault_.empty()) return;
        switch (i.kind) {
            case Kind::load:
                return check_load(i);
            case Kind::store:
            case Kind::add:
                return check_store(i);
            case Kind::constant:
                return demand(i.row, "a constant is one value per row");
            case Kind::formula:
                return check_formula(i);
            case Kind::cast:
                return demand(i.operand == arg(i, 0).dtype && i.row == arg(i, 0).row && i.point == arg(i, 0).point,
                              "it is no conversion of its operand");
            case Kind::reduce:
                return check_reduction(i);
            case Kind::product:
                return check_product(i);
        }
    }

    void check_load(const LoopInstruction& i) {
        const LoopOperand& o = p_.operands[i.index];
        demand(!o.written && o.dtype == i.dtype, "it is no element of its operand");
        demand(!i.row || o.step == LoopOperand::Step::none || i.row == p_.has_rows, "it is no value of a row");
    }

    void check_store(const LoopInstruction& i) {
        const LoopOperand& o = p_.operands[i.index];
        ++writes_[i.index];
        demand(o.written && o.dtype == i.dtype, "it is no result");
        demand(!arg(i, 0).point, "a point is no result");
        if (i.kind == Kind::add)
            demand(p_.has_sums && !i.row && i.operand == arg(i, 0).dtype && is_float(i.operand) &&
                       !is_half(i.operand) && i.dtype == (p_.in_order ? DType::f64 : i.operand) &&
                       o.step == LoopOperand::Step::dense,
                   "it does not add");
        else
            demand(i.dtype == arg(i, 0).dtype && (!i.row || arg(i, 0).row), "it stores another value");
        demand(i.row || o.step == LoopOperand::Step::dense || task_.inner <= 1 || o.step == LoopOperand::Step::wide,
               "elements are stored to one place");
    }

    void check_formula(const LoopInstruction& i) {
        const int cost = formula_cost(i.name, i.operand);
        const FormulaForm form = formula_form(i.name);
        demand(cost > 0 && !is_half(i.operand), "there is no such formula");
        if (!fault_.empty()) return;
        demand(i.args.size() == form.operands, "the formula has other operands");
        if (!fault_.empty()) return;
        for (size_t k = 0; k < i.args.size(); ++k) {
            const bool mask = (form.masks >> k & 1) != 0;
            demand(arg(i, k).dtype == (mask ? DType::boolean : i.operand), "the formula has operands of another dtype");
        }
        demand(i.dtype == (gives_bools(i.name) ? DType::boolean : i.operand), "the formula gives another dtype");
        demand(i.row == all_args(i, &LoopInstruction::row) && i.point == any_arg(i, &LoopInstruction::point),
               "its level is not that of its operands");
    }

    void check_reduction(const LoopInstruction& i) {
        const bool sums = i.name == "sum" || i.name == "squares";
        demand(sums || i.name == "max" || i.name == "min", "there is no such reduction");
        demand(i.operand == arg(i, 0).dtype && !i.point, "it does not reduce its operand");
        demand(is_float(i.operand) && is_float(i.dtype) && (sums || i.dtype == i.operand), "it has a wrong dtype");
        demand(p_.depth.empty() ? i.row && p_.has_rows : !i.row && i.name != "squares", "it is of another level");
    }

    void check_product(const LoopInstruction& i) {
        demand(i.matrix < p_.operands.size(), "there is no such operand");
        if (!fault_.empty()) return;
        const LoopOperand &a = p_.operands[i.index], &b = p_.operands[i.matrix];
        demand(!a.written && !b.written && a.dtype == i.dtype && b.dtype == i.dtype && i.operand == i.dtype,
               "a product has operands of another dtype");
        demand(is_float(i.dtype) && !is_half(i.dtype) && p_.depth.empty() && !i.row && i.index != i.matrix &&
                   a.step == LoopOperand::Step::none && b.step == LoopOperand::Step::dense,
               "it is no product");
        demand(i.depth >= 1 && i.depth < kMost && i.stride >= 0 && i.stride < kMost, "a product is too large");
    }

    // Checks the elements at which an operand is read or written, as distances from the first one.
    void check_memory() {
        size_t next = p_.first_stride();
        const auto outer = static_cast<size_t>(p_.outer_rank);
        bool empty = false;
        for (size_t i = 0; i < p_.first_stride(); ++i) empty |= task_.sizes[i] == 0;
        for (size_t k = 0; k < p_.operands.size(); ++k) {
            const LoopOperand& o = p_.operands[k];
            __int128 least = 0, most = 0;
            auto step = [&](int64_t stride, int64_t size) {
                const __int128 far = static_cast<__int128>(stride) * std::max<int64_t>(size - 1, 0);
                (far < 0 ? least : most) += far;
            };
            // Sums in order: each block of rows is summed in memory of one row.
            const bool adds = p_.in_order && add_to(p_, k);
            for (size_t i = 0; i < outer; ++i) {
                demand(!adds || task_.sizes[next] == 0, "rows add to several places");
                step(task_.sizes[next++], task_.sizes[i]);
            }
            if (o.step == LoopOperand::Step::wide) step(task_.sizes[next++], task_.inner);
            if (o.step == LoopOperand::Step::dense) step(1, task_.inner);
            for (size_t i = 0; i < p_.depth.size(); ++i) step(task_.sizes[next++], task_.sizes[outer + 1 + i]);
            for (const LoopInstruction& i : p_.code) {
                if (i.kind != Kind::product) continue;
                if (i.index == k) step(1, i.depth);
                if (i.matrix == k) step(i.stride, i.depth);
            }
            const __int128 size = static_cast<__int128>(size_of(dtype_in_memory(p_, k))), start = task_.offsets[k];
            at_ = k;
            demand(
                empty || (start + least * size >= 0 && start + (most + 1) * size <= static_cast<__int128>(bytes_[k])),
                "an operand ends behind its memory");
        }
    }

    static constexpr int64_t kMost = int64_t{1} << 40;
    const LoopTask& task_;
    const LoopProgram& p_;
    std::span<const size_t> bytes_;
    size_t at_ = 0;
    std::string fault_;
    std::vector<int> writes_;
};

}  // namespace

DType dtype_in_memory(const LoopProgram& program, size_t operand) {
    const LoopInstruction* add = add_to(program, operand);
    return add ? add->operand : program.operands[operand].dtype;
}

std::string loop_fault(const LoopTask& task, std::span<const size_t> bytes) { return LoopCheck(task, bytes).run(); }

}  // namespace lunaria::graph
