#include "core/lite/runtime/loop_code.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "core/loops/loop_check.h"

namespace lunaria::lite {

using graph::LoopInstruction;
using graph::LoopOperand;
using graph::LoopProgram;
using Operation = LoopOperation;

namespace {

// Elements of a block of a long row, and of the longest row that is kept whole.
constexpr int64_t kBlockElements = 512, kWholeRow = 8192;
// The amount of work for one more thread, in additions of floats.
constexpr int64_t kThreadWork = 32 * 1024;

// In the order of Reduction.
constexpr std::string_view kReductions[] = {"sum", "squares", "max", "min"};

int64_t grouped(int64_t count) { return (count + kGroup - 1) / kGroup * kGroup; }

class LoopMaker {
  public:
    LoopMaker(const LoopProgram& program, std::span<const int64_t> sizes, std::string& fault)
        : p_(program), sizes_(sizes), fault_(fault), code_(std::make_unique<LoopCode>()) {}

    std::unique_ptr<LoopCode> run() {
        read_sizes();
        choose_block();
        passes_ = graph::passes_of(p_);
        rows_.assign(p_.code.size(), kNone);
        elements_.assign(p_.code.size(), kNone);
        const int last = passes_.empty() ? 0 : *std::max_element(passes_.begin(), passes_.end());
        code_->passes.resize(static_cast<size_t>(last) + 1);
        for (int pass = 0; pass <= last && fault_.empty(); ++pass) make_pass(pass);
        if (!fault_.empty()) return nullptr;
        write_in_place();
        place_constants();
        place_registers();
        code_->part = std::max<int64_t>(1, kThreadWork / graph::loop_cost(p_, sizes_));
        return std::move(code_);
    }

  private:
    using Kind = LoopInstruction::Kind;
    static constexpr uint16_t kNone = 0xffff;

    // What a check of instructions one by one does not find.
    bool demand(bool holds, const char* otherwise) {
        if (!holds && fault_.empty()) fault_ = std::string("a loop cannot be computed: ") + otherwise;
        return holds;
    }

    void read_sizes() {
        const auto outer = static_cast<size_t>(p_.outer_rank);
        code_->outer.assign(sizes_.begin(), sizes_.begin() + p_.outer_rank);
        code_->inner = sizes_[outer];
        for (const int64_t size : code_->outer) code_->rows *= size;
        code_->depth.assign(sizes_.begin() + p_.outer_rank + 1,
                            sizes_.begin() + static_cast<int64_t>(p_.first_stride()));
        code_->has_rows = p_.has_rows;
        size_t next = p_.first_stride();
        for (size_t k = 0; k < p_.operands.size(); ++k) {
            const LoopOperand& o = p_.operands[k];
            // Sums lie in memory in the dtype of their terms.
            const auto width = static_cast<int64_t>(size_of(graph::dtype_in_memory(p_, k)));
            LoopCode::Operand operand{o.dtype, o.step, {}, 0, {}, true};
            for (size_t i = 0; i < outer; ++i) operand.strides.push_back(sizes_[next++] * width);
            if (o.step == LoopOperand::Step::wide) operand.wide = sizes_[next++] * width;
            if (o.step == LoopOperand::Step::dense) operand.wide = width;
            for (size_t i = 0; i < p_.depth.size(); ++i) operand.points.push_back(sizes_[next++] * width);
            int64_t row = code_->inner * width;
            for (size_t i = outer; i-- > 0;) {
                operand.is_flat = operand.is_flat && operand.strides[i] == row;
                row *= code_->outer[i];
            }
            code_->operands.push_back(std::move(operand));
        }
    }

    void choose_block() {
        const int64_t whole = grouped(std::max<int64_t>(code_->inner, 1));
        code_->batch = 1;
        code_->pitch = whole;
        if (!p_.has_sums && whole <= kBlockElements / 2)
            code_->batch = std::clamp<int64_t>(kBlockElements / whole, 1, std::max<int64_t>(code_->rows, 1));
        keeps_ = code_->batch > 1 || (p_.has_rows && whole <= kWholeRow) || whole <= kBlockElements;
        code_->capacity = code_->batch > 1 ? code_->batch * whole : keeps_ ? whole : kBlockElements;
        if (code_->batch == 1 && !keeps_) code_->pitch = kBlockElements;
    }

    uint16_t new_value(DType t, bool row) {
        if (!demand(code_->values.size() < kNone - 1, "it is too long")) return 0;
        code_->values.push_back({lane_of(t), row, false, 0});
        return static_cast<uint16_t>(code_->values.size() - 1);
    }
    bool is_single(uint16_t value) const {
        return code_->values[value].constant || (code_->values[value].row && code_->batch == 1);
    }

    // The targets of a pass, and what they need.
    void make_pass(int pass) {
        LoopCode::Pass& to = code_->passes[static_cast<size_t>(pass)];
        if (!keeps_) {
            elements_.assign(p_.code.size(), kNone);
            spread_values_.clear();
        }
        for (size_t i = 0; i < p_.code.size(); ++i) {
            const LoopInstruction& at = p_.code[i];
            if (!at.row || passes_[i] != pass || at.kind == Kind::reduce) continue;
            if (at.kind == Kind::store) {
                Operation store = operation(Operation::Kind::store_row, at.dtype);
                store.row = true;
                store.operand = at.index;
                add_argument(store, rows_[at.args[0]]);
                to.stores.push_back(store);
            } else {
                rows_[i] = write(i, to.rows, rows_);
            }
        }
        for (size_t i = 0; i < p_.code.size() && fault_.empty(); ++i) {
            const LoopInstruction& at = p_.code[i];
            if (at.kind == Kind::store && !at.row && passes_[i] == pass) {
                Operation store = operation(Operation::Kind::store, at.dtype);
                store.operand = at.index;
                store.memory = storer_of(at.dtype);
                add_argument(store, spread(element(at.args[0], to), to));
                to.stores.push_back(store);
            } else if (at.kind == Kind::add) {
                if (passes_[i] != pass) continue;
                Operation add = operation(Operation::Kind::add, at.operand);
                add.operand = at.index;
                add.index = static_cast<uint16_t>(code_->sums.size());
                code_->sums.push_back({at.index, at.operand});
                add_argument(add, dense(element(at.args[0], to), to));
                to.stores.push_back(add);
            } else if (at.kind == Kind::reduce && p_.depth.empty() && passes_[i] - 1 == pass) {
                write_reduction(i, to);
            }
        }
    }

    static Operation operation(Operation::Kind kind, DType t) {
        Operation o;
        o.kind = kind;
        o.dtype = t;
        return o;
    }
    void add_argument(Operation& o, uint16_t value) {
        o.step[o.arguments] = is_single(value) ? 0 : 1;
        o.args[o.arguments++] = value;
    }

    void write_reduction(size_t i, LoopCode::Pass& to) {
        const LoopInstruction& at = p_.code[i];
        LoopCode::Accumulator a;
        if (!reduction_of(at.name, a.reduction)) return;
        a.operand = at.operand;
        a.dtype = at.dtype;
        rows_[i] = a.out = new_value(at.dtype, true);
        Operation reduce = operation(Operation::Kind::reduce, at.operand);
        reduce.index = static_cast<uint16_t>(code_->accumulators.size());
        add_argument(reduce, dense(element(at.args[0], to), to));
        to.elements.push_back(reduce);
        to.reductions.push_back(reduce.index);
        code_->accumulators.push_back(a);
    }
    bool reduction_of(const std::string& name, Reduction& to) {
        const auto found = std::ranges::find(kReductions, name);
        if (!demand(found != std::end(kReductions), "there is no such reduction")) return false;
        to = static_cast<Reduction>(found - std::begin(kReductions));
        return true;
    }

    // The value of an instruction for elements: written to the pass if it is not there yet.
    uint16_t element(size_t i, LoopCode::Pass& to) {
        std::vector<size_t> open{i};
        while (!open.empty() && fault_.empty()) {
            const size_t at = open.back();
            const LoopInstruction& instruction = p_.code[at];
            if (instruction.row || elements_[at] != kNone) {
                open.pop_back();
                continue;
            }
            if (!demand(!instruction.point, "a point outside of a reduction")) return 0;
            bool ready = true;
            for (const size_t a : needed(at)) {
                if (p_.code[a].row || elements_[a] != kNone) continue;
                open.push_back(a);
                ready = false;
            }
            if (!ready) continue;
            elements_[at] = instruction.kind == Kind::reduce ? write_points(at, to) : write_element(at, to);
            open.pop_back();
        }
        if (!fault_.empty()) return 0;
        const uint16_t value = p_.code[i].row ? rows_[i] : elements_[i];
        demand(value != kNone, "a value of a row comes too late");
        return fault_.empty() ? value : uint16_t{0};
    }
    // The values per element from which an instruction is computed; of a reduction over points: those outside of it.
    std::vector<size_t> needed(size_t i) const {
        const LoopInstruction& at = p_.code[i];
        if (at.kind != Kind::reduce) return {at.args.begin(), at.args.end()};
        std::vector<size_t> outside, open(at.args.begin(), at.args.end());
        std::vector<bool> seen(p_.code.size(), false);
        while (!open.empty()) {
            const size_t a = open.back();
            open.pop_back();
            if (seen[a]) continue;
            seen[a] = true;
            if (!p_.code[a].point)
                outside.push_back(a);
            else
                open.insert(open.end(), p_.code[a].args.begin(), p_.code[a].args.end());
        }
        return outside;
    }

    // A value of rows as an argument of something on elements.
    uint16_t spread(uint16_t value, LoopCode::Pass& to) {
        const LoopCode::Value& v = code_->values[value];
        return !v.row || v.constant || code_->batch == 1 ? value : dense(value, to);
    }
    // The same, also for a single number: something that has no steps reads it.
    uint16_t dense(uint16_t value, LoopCode::Pass& to) {
        const LoopCode::Value& v = code_->values[value];
        if (!v.row && !v.constant) return value;
        if (const auto found = spread_values_.find(value); found != spread_values_.end()) return found->second;
        Operation o = operation(Operation::Kind::spread, DType::f32);
        add_argument(o, value);
        const Lane lane = v.lane;
        o.out = new_value(DType::f32, false);
        code_->values[o.out].lane = lane;
        to.elements.push_back(o);
        spread_values_[value] = o.out;
        return o.out;
    }

    uint16_t write_element(size_t i, LoopCode::Pass& to) {
        // Arguments that are values of rows become registers of elements first.
        std::vector<uint16_t> values = elements_;
        for (const uint16_t a : p_.code[i].args) {
            if (!p_.code[a].row) continue;
            if (!demand(rows_[a] != kNone, "a value of a row comes too late")) return 0;
            values[a] = spread(rows_[a], to);
        }
        return write(i, to.elements, values);
    }

    // Writes one instruction; `values` has its arguments.
    uint16_t write(size_t i, std::vector<Operation>& to, const std::vector<uint16_t>& values) {
        const LoopInstruction& at = p_.code[i];
        for (const uint16_t a : at.args)
            if (!demand(values[a] != kNone, "a value comes too late")) return 0;
        switch (at.kind) {
            case Kind::constant:
                return constant(at);
            case Kind::load: {
                Operation o = operation(at.row ? Operation::Kind::load_row : Operation::Kind::load, at.dtype);
                o.row = at.row;
                o.operand = at.index;
                o.memory = loader_of(at.dtype);
                o.out = new_value(at.dtype, at.row);
                to.push_back(o);
                return o.out;
            }
            case Kind::product: {
                Operation o = operation(Operation::Kind::product, at.dtype);
                o.operand = at.index;
                o.matrix = at.matrix;
                o.depth = at.depth;
                o.stride = at.stride;
                o.out = new_value(at.dtype, false);
                to.push_back(o);
                return o.out;
            }
            case Kind::formula:
                return write_formula(at, to, values);
            case Kind::cast:
                return write_cast(at, to, values[at.args[0]]);
            default:
                demand(false, "an instruction stands in the wrong place");
                return 0;
        }
    }
    uint16_t call(BlockFunction run, DType t, bool row, std::span<const uint16_t> args, std::vector<Operation>& to) {
        Operation o = operation(Operation::Kind::call, t);
        o.row = row;
        o.run = run;
        for (const uint16_t a : args) add_argument(o, a);
        o.out = new_value(t, row);
        to.push_back(o);
        return o.out;
    }
    uint16_t write_formula(const LoopInstruction& at, std::vector<Operation>& to, const std::vector<uint16_t>& values) {
        const FormulaBlock* f = find_formula(at.name, at.operand);
        if (!f) {
            if (fault_.empty())
                fault_ = "there is no formula '" + at.name + "' for " + std::string(name_of(at.operand));
            return 0;
        }
        std::vector<uint16_t> args;
        for (const uint16_t a : at.args) args.push_back(values[a]);
        if (!demand(f->operands == static_cast<int>(args.size()), "a formula has other arguments")) return 0;
        uint16_t result = call(f->run, at.dtype, at.row, args, to);
        if (const BlockFunction wrap = f->boolean || !is_integer(at.dtype) ? nullptr : round_to(at.dtype))
            result = call(wrap, at.dtype, at.row, {&result, 1}, to);
        return result;
    }
    uint16_t write_cast(const LoopInstruction& at, std::vector<Operation>& to, uint16_t value) {
        if (at.operand == at.dtype) return value;
        // Numbers go to halves in two steps, as C++ converts them.
        if (const BlockFunction change = change_lane(at.operand, lane_of(at.dtype)))
            value = call(change, at.dtype, at.row, {&value, 1}, to);
        if (const BlockFunction round = round_to(at.dtype)) value = call(round, at.dtype, at.row, {&value, 1}, to);
        return value;
    }

    uint16_t constant(const LoopInstruction& at) {
        const uint16_t v = new_value(at.dtype, true);
        code_->values[v].constant = true;
        constants_.push_back({v, &at});
        return v;
    }

    uint16_t write_points(size_t i, LoopCode::Pass& to) {
        const LoopInstruction& at = p_.code[i];
        LoopCode::Points points;
        if (!reduction_of(at.name, points.reduction)) return 0;
        points.operand = at.operand;
        points.dtype = at.dtype;
        points.wide = p_.in_order || at.dtype == DType::f64;
        std::vector<uint16_t> values = elements_;
        for (const size_t a : needed(i))
            if (p_.code[a].row) {
                if (!demand(rows_[a] != kNone, "a value of a row comes too late")) return 0;
                values[a] = spread(rows_[a], to);
            }
        std::vector<bool> wanted(p_.code.size(), false);
        wanted[at.args[0]] = true;
        for (size_t k = i; k-- > 0;)
            if (wanted[k] && p_.code[k].point)
                for (const uint16_t a : p_.code[k].args) wanted[a] = true;
        for (size_t k = 0; k < i && fault_.empty(); ++k)
            if (wanted[k] && p_.code[k].point) {
                if (!demand(p_.code[k].kind != Kind::reduce, "a reduction of a point")) return 0;
                values[k] = write(k, points.code, values);
            }
        if (!fault_.empty()) return 0;
        points.arg = p_.code[at.args[0]].point ? values[at.args[0]] : dense(values[at.args[0]], to);
        points.out = new_value(at.dtype, false);
        Operation o = operation(Operation::Kind::points, at.dtype);
        o.index = static_cast<uint16_t>(code_->points.size());
        o.out = points.out;
        code_->points.push_back(std::move(points));
        to.elements.push_back(o);
        return o.out;
    }

    // A single result that the last operation computes is written to its place.
    void write_in_place() {
        LoopCode::Pass& last = code_->passes.back();
        size_t stores = 0;
        for (const LoopCode::Pass& pass : code_->passes) stores += pass.stores.size();
        if (stores != 1 || last.stores.empty() || last.elements.empty()) return;
        const Operation& store = last.stores[0];
        Operation& call = last.elements.back();
        const LoopCode::Operand& o = code_->operands[store.operand];
        if (store.kind != Operation::Kind::store || call.kind != Operation::Kind::call || call.out != store.args[0] ||
            !is_same_in_memory(store.dtype) || o.step != LoopOperand::Step::dense)
            return;
        call.direct = true;
        call.operand = store.operand;
    }

    void place_constants() {
        code_->constant_memory = std::make_unique<char[]>(constants_.size() * kGroup * 8 + 64);
        const auto address = reinterpret_cast<uintptr_t>(code_->constant_memory.get());
        code_->constants = code_->constant_memory.get() + (64 - address % 64) % 64;
        for (size_t k = 0; k < constants_.size(); ++k) {
            LoopCode::Value& v = code_->values[constants_[k].value];
            const LoopInstruction& at = *constants_[k].instruction;
            v.offset = k * kGroup * 8;
            char* const to = code_->constants + v.offset;
            for (int64_t i = 0; i < kGroup; ++i) {
                if (v.lane == Lane::boolean)
                    to[i] = at.number != 0 || at.integer != 0;
                else if (v.lane == Lane::integer)
                    reinterpret_cast<int64_t*>(to)[i] = at.integer;
                else if (v.lane == Lane::twice)
                    reinterpret_cast<double*>(to)[i] = at.number;
                else
                    reinterpret_cast<float*>(to)[i] = single(at);
            }
        }
    }
    static float single(const LoopInstruction& at) {
        const auto x = static_cast<float>(at.number);
        if (at.dtype == DType::f16) return Half(x);
        if (at.dtype == DType::bf16) return BFloat16(x);
        return x;
    }

    // Calls f(operation) for all operations in their order, with the number of each in `time_`.
    template <class F>
    void for_each_operation(F&& f) {
        time_ = 0;
        for (LoopCode::Pass& pass : code_->passes)
            for (auto* list : {&pass.rows, &pass.elements, &pass.stores})
                for (const Operation& o : *list) {
                    ++time_;
                    f(o);
                }
    }
    size_t take(size_t bytes) {
        const size_t at = next_;
        next_ += (bytes + 63) / 64 * 64;
        return at;
    }
    // Values of points live as long as their loop.
    void find_last_uses() {
        last_.assign(code_->values.size(), 0);
        is_apart_.assign(code_->values.size(), false);
        for_each_operation([&](const Operation& o) {
            for (int k = 0; k < o.arguments; ++k) last_[o.args[k]] = time_;
            if (o.kind != Operation::Kind::points) return;
            const LoopCode::Points& points = code_->points[o.index];
            for (const Operation& inner : points.code) {
                for (int k = 0; k < inner.arguments; ++k) last_[inner.args[k]] = time_;
                is_apart_[inner.out] = true;
            }
            last_[points.arg] = time_;
        });
    }
    static bool defines(const Operation& o) {
        return o.kind == Operation::Kind::load || o.kind == Operation::Kind::call ||
               o.kind == Operation::Kind::spread || o.kind == Operation::Kind::product ||
               o.kind == Operation::Kind::points;
    }
    // Registers for values of elements are shared by values that do not live at the same time.
    void place_registers() {
        find_last_uses();
        for (size_t v = 0; v < code_->values.size(); ++v) {
            LoopCode::Value& value = code_->values[v];
            if (value.row && !value.constant)
                value.offset = take(static_cast<size_t>(grouped(code_->batch)) * width_of(value.lane));
            else if (is_apart_[v])
                value.offset = take(bytes_of(v));
        }
        std::map<size_t, std::vector<size_t>> free;   // by bytes
        std::vector<std::pair<size_t, size_t>> live;  // last use, value
        for_each_operation([&](const Operation& o) {
            std::erase_if(live, [&](const auto& l) {
                if (l.first >= time_) return false;
                free[bytes_of(l.second)].push_back(code_->values[l.second].offset);
                return true;
            });
            LoopCode::Value& v = code_->values[o.out];
            if (!defines(o) || v.row || v.constant || is_apart_[o.out]) return;
            std::vector<size_t>& spare = free[bytes_of(o.out)];
            if (spare.empty()) {
                v.offset = take(bytes_of(o.out));
            } else {
                v.offset = spare.back();
                spare.pop_back();
            }
            live.emplace_back(last_[o.out], o.out);
        });
        for (LoopCode::Points& points : code_->points) points.sums = take(static_cast<size_t>(code_->capacity) * 8);
        code_->tables = next_;
        code_->scratch = next_ + table_bytes();
    }
    size_t bytes_of(size_t value) const {
        return static_cast<size_t>(code_->capacity) * width_of(code_->values[value].lane);
    }
    // Addresses of values and rows, indices, distances of points, accumulators, sums of rows: see LoopRun.
    size_t table_bytes() const {
        const size_t operands = code_->operands.size(), batch = static_cast<size_t>(code_->batch);
        size_t bytes =
            (code_->values.size() + operands * batch + operands * 2 + code_->outer.size() + code_->depth.size()) * 8 +
            64;
        bytes += code_->accumulators.size() * batch * sizeof(RowSum) + 64;
        bytes += code_->sums.size() * (static_cast<size_t>(code_->inner) + 8) * 4 * 8 + 64;
        return bytes;
    }

    struct Constant {
        uint16_t value;
        const LoopInstruction* instruction;
    };

    const LoopProgram& p_;
    const std::span<const int64_t> sizes_;
    std::string& fault_;
    std::unique_ptr<LoopCode> code_;
    std::vector<int> passes_;
    std::vector<uint16_t> rows_, elements_;  // values by instruction
    std::map<uint16_t, uint16_t> spread_values_;
    std::vector<Constant> constants_;
    bool keeps_ = true;
    std::vector<size_t> last_;  // uses, by value
    std::vector<bool> is_apart_;
    size_t time_ = 0, next_ = 0;
};

}  // namespace

std::unique_ptr<LoopCode> make_loop(const LoopProgram& program, std::span<const int64_t> sizes, std::string& fault) {
    fault.clear();
    return LoopMaker(program, sizes, fault).run();
}

namespace {
bool is_split_by_rows(const LoopCode& code, int64_t parts) {
    return code.sums.empty() && (code.has_rows || code.batch > 1 || code.rows >= parts * 4);
}
}  // namespace

int parts_of(const LoopCode& code, int threads) {
    const int64_t all = code.rows * code.inner;
    if (threads <= 1 || all <= code.part) return 1;
    const int64_t wanted = std::min<int64_t>(threads, (all + code.part - 1) / code.part);
    const bool by_rows = is_split_by_rows(code, wanted);
    const int64_t most = by_rows ? (code.rows + code.batch - 1) / code.batch : (code.inner + 63) / 64;
    return static_cast<int>(std::max<int64_t>(1, std::min(wanted, most)));
}

LoopPart part_of(const LoopCode& code, int parts, int number) {
    LoopPart part{0, code.rows, 0, code.inner};
    if (parts <= 1) return part;
    const bool by_rows = is_split_by_rows(code, parts);
    const int64_t unit = by_rows ? code.batch : 64, size = by_rows ? code.rows : code.inner;
    const int64_t units = (size + unit - 1) / unit;
    const int64_t begin = std::min(size, units * number / parts * unit);
    const int64_t end = std::min(size, units * (number + 1) / parts * unit);
    (by_rows ? part.row_begin : part.column_begin) = begin;
    (by_rows ? part.row_end : part.column_end) = end;
    return part;
}

}  // namespace lunaria::lite
