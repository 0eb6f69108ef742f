#include "jit/graph/loop_builder.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/loops/limits.h"
#include "core/memory/cache_size.h"
#include "core/operator/row_pass.h"
#include "jit/graph/operators.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

using Kind = LoopInstruction::Kind;

// Results of this many bytes and more do not stay in the last cache: storing them past it saves reading their lines
// first. For results that would stay, that costs three times as much.
int64_t streamed_bytes() {
    static const int64_t bytes = std::max(int64_t{24} << 20, last_cache_bytes() / 4 * 3);
    return bytes;
}

// Strides of `a` along the axes of a shape to which it is broadcast.
std::optional<Strides> broadcast_strides(const Arrangement& a, const Shape& to) {
    int extra = to.rank() - a.type.shape.rank();
    if (extra < 0) return {};
    Strides strides;
    strides.resize(to.rank(), 0);
    for (int i = 0; i < a.type.shape.rank(); ++i) {
        if (a.type.shape[i] == 1) continue;
        if (a.type.shape[i] != to[extra + i]) return {};
        strides[extra + i] = a.strides[i];
    }
    return strides;
}

// Strides along the axes of the domain, for an operand of a node whose value has the shape `at`.
std::optional<Strides> seen(const Arrangement& a, const Shape& at, const Piece& piece) {
    auto own = broadcast_strides(a, at);
    if (!own || at == piece.domain) return own;
    Strides strides;
    strides.resize(piece.domain.rank(), 0);
    int to = 0;
    for (int i = 0; i < at.rank(); ++i) {
        if (at[i] == 1) continue;
        while (piece.domain[to] == 1) ++to;
        strides[to++] = (*own)[i];
    }
    return strides;
}

Shape leading(const Shape& domain, int rows) { return Shape(domain.dims().first(static_cast<size_t>(rows))); }

// Strides of a dense value with one element per element of the domain, or per row of it.
Strides own_strides(const Piece& piece, bool per_row) {
    if (!per_row) return contiguous_strides(piece.domain);
    Strides strides = contiguous_strides(leading(piece.domain, piece.rows));
    strides.resize(piece.domain.rank(), 0);
    return strides;
}

bool same_strides(const Strides& a, const Strides& b, const Shape& domain) {
    for (int i = 0; i < domain.rank(); ++i)
        if (domain[i] != 1 && a[i] != b[i]) return false;
    return true;
}

bool gives_row(const ir::Node& node, const Piece& piece, const Arrangements& arrangements) {
    Part part = part_of(node, arrangements);
    if (part == Part::row || part == Part::sum) return false;
    return part == Part::reduce || !(node.type.tensor.shape == piece.domain);
}

// The shape to which a node's operands are broadcast.
Shape shape_at(const ir::Node& node, Part part) {
    return part == Part::element || part == Part::product ? node.type.tensor.shape : static_type(node.args[0])->shape;
}

class Writer {
  public:
    Writer(const Piece& piece, const Arrangements& arrangements) : piece_(piece), arrangements_(arrangements) {}

    std::optional<Loop> run(const std::function<bool(const ir::Node*)>& is_needed) {
        program_.has_rows = piece_.rows >= 0;
        program_.in_order = adds_in_order();
        for (const ir::Node* node : piece_.nodes) {
            row_of_[node] = gives_row(*node, piece_, arrangements_);
            auto value = write(*node);
            if (!value) return {};
            values_[node] = *value;
        }
        int64_t bytes = 0;
        for (const ir::Node* node : piece_.nodes) {
            if (!is_needed(node)) continue;
            const bool sums = part_of(*node, arrangements_) == Part::sum;
            const DType t = node->type.tensor.dtype, kept = sums ? sum_dtype(t) : t;
            LoopInstruction store{
                .kind = sums ? Kind::add : Kind::store, .dtype = kept, .operand = t, .row = row_of_[node]};
            const Strides strides = sums ? sum_strides(*node) : own_strides(piece_, row_of_[node]);
            store.index = operand(node, 0, strides, kept, true);
            program_.has_sums |= sums;
            store.args = {values_[node]};
            program_.code.push_back(std::move(store));
            bytes += node->type.tensor.shape.size() * static_cast<int64_t>(size_of(node->type.tensor.dtype));
        }
        if (program_.code.size() > 4000) return {};
        return finish(bytes);
    }

  private:
    // The builder with which an operator's entry writes its pass over the rows.
    class RowWriter : public RowPass {
      public:
        RowWriter(Writer& writer, const ir::Node& node, const Shape& at, DType t)
            : RowPass(call_), writer_(writer), call_(*node.op, node.args, t), at_(at) {}

        bool failed = false;  // an operand cannot be read

        RowValue in(size_t i) override {
            const auto v = writer_.value(call_.args[i], at_, call_.dtype);
            failed |= !v;
            operands_.push_back(v.value_or(0));
            return {*this, operands_.back()};
        }
        bool as_host() const override { return writer_.program_.in_order; }
        RowValue number(double x) override { return {*this, writer_.number(x, call_.dtype)}; }
        double length() const override {
            const Piece& piece = writer_.piece_;
            int64_t length = 1;
            for (int i = piece.rows; i < piece.domain.rank(); ++i) length *= piece.domain[i];
            return static_cast<double>(length);
        }
        RowValue formula(std::string_view name, std::initializer_list<RowValue> args) override {
            // An operand that is a constant does not count as a plain number.
            auto is_number = [&](RowValue v) {
                return writer_.program_.code[v.index()].kind == Kind::constant &&
                       std::ranges::find(operands_, v.index()) == operands_.end();
            };
            auto is_own = [&](RowValue v) { return !is_number(v) && writer_.dtype(v.index()) == call_.dtype; };
            auto is_wide = [&](RowValue v) { return !is_number(v) && writer_.dtype(v.index()) == DType::f64; };
            const bool wide = std::ranges::none_of(args, is_own) && std::ranges::any_of(args, is_wide);
            const DType t = wide ? DType::f64 : call_.dtype;
            std::vector<uint16_t> values;
            for (RowValue v : args) {
                const uint16_t i = v.index();
                values.push_back(is_number(v) ? writer_.number(writer_.program_.code[i].number, t)
                                 : writer_.dtype(i) == DType::boolean ? i
                                                                      : writer_.cast(i, t));
            }
            return {*this, writer_.formula(name, std::move(values), t, name == "less")};
        }
        RowValue sum(RowValue x) override {
            return {*this, writer_.reduce("sum", x.index(), writer_.sum_dtype(call_.dtype))};
        }
        RowValue squares(RowValue x) override {
            const DType t = writer_.sum_dtype(call_.dtype);
            if (t == call_.dtype && t != DType::f64) return sum(formula("square", {x}));
            return {*this, writer_.reduce("squares", x.index(), t)};
        }
        RowValue max(RowValue x) override { return {*this, writer_.reduce("max", x.index(), call_.dtype)}; }
        RowValue min(RowValue x) override { return {*this, writer_.reduce("min", x.index(), call_.dtype)}; }

      private:
        Writer& writer_;
        std::vector<uint16_t> operands_;
        const Call call_;
        const Shape& at_;
    };

    uint16_t add(LoopInstruction i) {
        program_.code.push_back(std::move(i));
        return static_cast<uint16_t>(program_.code.size() - 1);
    }
    bool row(uint16_t v) const { return program_.code[v].row; }
    DType dtype(uint16_t v) const { return program_.code[v].dtype; }

    uint16_t constant(double number, int64_t integer, DType t) {
        return add({.kind = Kind::constant, .dtype = t, .row = true, .number = number, .integer = integer});
    }
    uint16_t number(double x, DType t) {
        const bool large = t == DType::u64 && x > 0;
        return constant(x, large ? static_cast<int64_t>(static_cast<uint64_t>(x)) : static_cast<int64_t>(x), t);
    }
    uint16_t cast(uint16_t v, DType to) {
        if (dtype(v) == to) return v;
        return add({.kind = Kind::cast, .dtype = to, .operand = dtype(v), .row = row(v), .args = {v}});
    }
    uint16_t formula(std::string_view name, std::vector<uint16_t> args, DType computed, bool boolean = false) {
        bool per_row = std::all_of(args.begin(), args.end(), [&](uint16_t a) { return row(a); });
        return add({.kind = Kind::formula,
                    .dtype = boolean ? DType::boolean : computed,
                    .operand = computed,
                    .row = per_row,
                    .name = std::string(name),
                    .args = std::move(args)});
    }
    // The dtype of sums of floats.
    DType sum_dtype(DType t) const { return program_.in_order ? DType::f64 : t; }
    uint16_t reduce(std::string_view name, uint16_t v, DType result) {
        return add({.kind = Kind::reduce,
                    .dtype = result,
                    .operand = dtype(v),
                    .row = true,
                    .name = std::string(name),
                    .args = {v}});
    }

    uint16_t operand(const ir::Node* root, int64_t offset, const Strides& strides, DType t, bool written) {
        for (size_t i = 0; i < bindings_.size(); ++i)
            if (bindings_[i].root == root && bindings_[i].offset == offset && bindings_[i].written == written &&
                same_strides(strides_[i], strides, piece_.domain))
                return static_cast<uint16_t>(i);
        bindings_.push_back({root, offset, written});
        strides_.push_back(strides);
        program_.operands.push_back({t, LoopOperand::Step::dense, written});
        return static_cast<uint16_t>(bindings_.size() - 1);
    }

    // Strides along the axes of the domain, for a value that lacks the axes that are summed over.
    Strides sum_strides(const ir::Node& node) const {
        const Shape axes = Call(*node.op, node.args, DType::f32).axes(1, 0);
        Strides strides;
        strides.resize(piece_.domain.rank(), 0);
        int64_t step = 1;
        for (int i = piece_.domain.rank(); i-- > 0;) {
            if (std::find(axes.begin(), axes.end(), i) != axes.end()) continue;
            strides[i] = step;
            step *= piece_.domain[i];
        }
        return strides;
    }

    bool varies_along_row(const Strides& strides) const {
        for (int i = std::max(piece_.rows, 0); i < piece_.domain.rank(); ++i)
            if (piece_.domain[i] != 1 && strides[i] != 0) return true;
        return false;
    }

    // The value of an argument of `node`, converted to `t`.
    std::optional<uint16_t> value(const Value& v, const Shape& at, DType t) {
        if (v.kind() == Value::Kind::integer) return constant(v.number(), v.integer(), t);
        if (v.is_number()) return number(v.number(), t);
        if (!v.is_node()) return {};
        if (auto c = constant_number(v); c && v.node()->constant.tensor().size() == 1) {
            const Tensor& one = v.node()->constant.tensor();
            bool whole = is_integer(one.dtype());
            uint16_t k = constant(*c, whole ? one.integer_at(0) : static_cast<int64_t>(*c), one.dtype());
            return cast(k, t);
        }
        const Arrangement* a = arrangements_.find(v.node());
        if (!a) return {};
        // A constant that is broadcast from one element.
        if (a->root != v.node() && a->root->kind == ir::NodeKind::constant && a->root->type.tensor.shape.size() == 1)
            return value(Value(const_cast<ir::Node*>(a->root)), at, t);
        auto strides = seen(*a, at, piece_);
        if (!strides) return {};
        if (auto own = values_.find(a->root); own != values_.end()) return cast(own->second, t);
        uint16_t which = operand(a->root, a->offset, *strides, a->type.dtype, false);
        auto [loaded, is_new] = loads_.try_emplace(which, 0);
        if (is_new)
            loaded->second = add({.kind = Kind::load,
                                  .dtype = a->type.dtype,
                                  .row = piece_.rows >= 0 && !varies_along_row(*strides),
                                  .index = which});
        return cast(loaded->second, t);
    }

    std::optional<uint16_t> write(const ir::Node& node) {
        Part part = part_of(node, arrangements_);
        const Shape at = shape_at(node, part);
        const DType result = node.type.tensor.dtype;
        if (part == Part::element) return write_element(node, at, result);
        if (part == Part::product) return write_product(node);
        const DType t = result;
        if (part == Part::sum) return value(node.args[0], at, t);
        RowWriter pass(*this, node, at, t);
        const RowValue y = node.op->row_fn(pass);
        return pass.failed ? std::nullopt : std::optional(cast(y.index(), result));
    }

    std::optional<uint16_t> write_element(const ir::Node& node, const Shape& at, DType result) {
        if (node.op->fuses_as == Fusion::cast) {
            auto x = value(node.args[0], at, static_type(node.args[0])->dtype);
            return x ? std::optional(cast(*x, result)) : std::nullopt;
        }
        const DType t = element_dtype(node);
        // Halves are stored and rounded after every operator; within a formula they are floats.
        const DType computed = is_half(t) ? DType::f32 : t;
        std::vector<uint16_t> args;
        for (size_t i = 0; i < node.args.size(); ++i) {
            const Value v = node.op == &ops().clamp ? limit_within(t, node.args[i]) : node.args[i];
            const ArgType type = node.op->signature.params[i].type;
            if (v.is_nil()) continue;
            if (type == ArgType::mask) {
                auto mask = value(v, at, DType::boolean);
                if (!mask) return {};
                args.push_back(*mask);
                continue;
            }
            // A plain number is never a half.
            auto x = value(v, at, v.is_number() ? computed : t);
            if (!x) return {};
            args.push_back(cast(*x, computed));
        }
        const bool boolean = result == DType::boolean && t != DType::boolean;
        uint16_t y = formula(node.op->name(), std::move(args), computed, boolean);
        return boolean ? y : cast(y, result);
    }

    uint16_t write_product(const ir::Node& node) {
        const Arrangement &a = *arrangements_.find(node.args[0].node()), &b = *arrangements_.find(node.args[1].node());
        Strides along_rows, along_columns;
        for (int64_t stride : {a.type.shape[0] == 1 ? 0 : a.strides[0], int64_t{0}}) along_rows.push_back(stride);
        for (int64_t stride : {0, 1}) along_columns.push_back(stride);
        const DType t = node.type.tensor.dtype;
        LoopInstruction product{.kind = Kind::product, .dtype = t, .operand = t};
        product.index = operand(a.root, a.offset, along_rows, t, false);
        product.matrix = operand(b.root, b.offset, along_columns, t, false);
        product.depth = b.type.shape[0];
        product.stride = b.strides[0];
        return add(std::move(product));
    }

    // Axes of the domain, in which axes that all operands step through evenly are merged into one, and the operands'
    // strides.
    struct Axes {
        std::vector<int64_t> dims;
        std::vector<std::vector<int64_t>> strides;

        void append(const Axes& more) {
            dims.insert(dims.end(), more.dims.begin(), more.dims.end());
            for (size_t k = 0; k < strides.size(); ++k)
                strides[k].insert(strides[k].end(), more.strides[k].begin(), more.strides[k].end());
        }
        void push_one() {
            dims.push_back(1);
            for (auto& s : strides) s.push_back(dims.size() == 1 || s.empty() ? 1 : 0);
        }
    };
    Axes merged(int first, int last) const {
        Axes axes{{}, std::vector<std::vector<int64_t>>(bindings_.size())};
        for (int i = first; i < last; ++i) {
            const int64_t size = piece_.domain[i];
            if (size == 1) continue;
            bool merges = !axes.dims.empty();
            for (size_t k = 0; merges && k < bindings_.size(); ++k)
                merges = axes.strides[k].back() == strides_[k][i] * size;
            if (!merges) axes.dims.push_back(size);
            if (merges) axes.dims.back() *= size;
            for (size_t k = 0; k < bindings_.size(); ++k) {
                if (!merges) axes.strides[k].push_back(0);
                axes.strides[k].back() = strides_[k][i];
            }
        }
        return axes;
    }

    // Computes the strides of each operand along the domain.
    std::optional<Loop> finish(int64_t bytes) {
        const int rank = piece_.domain.rank();
        Axes axes = merged(0, piece_.rows >= 0 ? piece_.rows : rank), points{{}, axes.strides};
        if (piece_.rows >= 0) {
            const Axes run = merged(piece_.rows, rank);
            if (goes_by_points(axes, run)) {
                points = run;
            } else {
                if (run.dims.size() > 1) return {};
                axes.append(run);
                if (run.dims.empty()) axes.push_one();
            }
        } else if (axes.dims.empty()) {
            axes.push_one();
        }
        Loop loop;
        const size_t outer = axes.dims.size() - 1;
        program_.outer_rank = static_cast<int>(outer);
        loop.inner = axes.dims.back();
        loop.sizes = axes.dims;
        for (size_t i = 0; i < outer; ++i) loop.rows *= axes.dims[i];
        if (!points.dims.empty()) set_depth(points.dims, loop);
        for (size_t k = 0; k < bindings_.size(); ++k) {
            if (is_better_copied(axes, points, k)) copy_first(axes, points, k);
            const int64_t step = axes.strides[k].back();
            program_.operands[k].step = step == 0   ? LoopOperand::Step::none
                                        : step == 1 ? LoopOperand::Step::dense
                                                    : LoopOperand::Step::wide;
            for (size_t i = 0; i < outer; ++i) loop.sizes.push_back(axes.strides[k][i]);
            if (step != 0 && step != 1) loop.sizes.push_back(step);
            if (points.dims.empty()) continue;
            loop.sizes.insert(loop.sizes.end(), points.strides[k].begin(), points.strides[k].end());
        }
        set_levels(points);
        program_.streams =
            !program_.has_rows && !program_.has_sums && points.dims.empty() && outer == 0 && bytes >= streamed_bytes();
        loop.program = std::move(program_);
        loop.operands = std::move(bindings_);
        return loop;
    }

    // Whether the piece is written from points to elements instead of from elements to rows: its results are all values
    // of rows, and neighbouring rows read the same elements or adjacent ones.
    bool goes_by_points(const Axes& rows, const Axes& run) const {
        constexpr int64_t kFewestColumns = 16, kMostPoints = 4096, kOften = 8;
        if (rows.dims.empty() || rows.dims.back() < kFewestColumns || run.dims.empty()) return false;
        for (const LoopInstruction& i : program_.code)
            if (i.kind == Kind::product || i.kind == Kind::add || i.name == "squares" ||
                (i.kind == Kind::store && !i.row))
                return false;
        int64_t points = 1, all = 1;
        for (int64_t size : run.dims) points *= size;
        for (int64_t size : rows.dims) all *= size;
        if (points > kMostPoints) return false;
        for (size_t k = 0; k < bindings_.size(); ++k) {
            const int64_t step = rows.strides[k].back();
            const int64_t read = count_read(rows, k) * count_read(run, k);
            if (step != 0 && step != 1 && all * points / read < kOften) return false;
        }
        return true;
    }
    // The number of an operand's elements along these axes.
    static int64_t count_read(const Axes& axes, size_t operand) {
        int64_t count = 1;
        for (size_t i = 0; i < axes.dims.size(); ++i)
            if (axes.strides[operand][i] != 0) count *= axes.dims[i];
        return count;
    }

    void set_depth(const std::vector<int64_t>& dims, Loop& loop) {
        constexpr int64_t kFewPoints = 32;  // the code of so few is written one by one
        int64_t points = 1;
        for (int64_t size : dims) points *= size;
        for (int64_t size : dims) program_.depth.push_back(points <= kFewPoints ? size : 0);
        loop.sizes.insert(loop.sizes.end(), dims.begin(), dims.end());
        program_.has_rows = false;
        program_.tile = loop.inner >= 64 ? 4 : loop.inner >= 32 ? 2 : 1;
    }

    // Sets the level of each value. An operand that does not step along the row is known before the row starts even
    // where there are no values per row; the same goes for operands that do not step along the points. A formula of
    // values of one level has that level.
    void set_levels(const Axes& points) {
        const bool by_points = !points.dims.empty();
        for (LoopInstruction& i : program_.code) {
            if (i.kind == Kind::load) {
                i.point = by_points && count_read(points, i.index) > 1;
                if (by_points) i.row = false;
                if (!i.point && program_.operands[i.index].step == LoopOperand::Step::none) i.row = true;
            } else if (by_points && (i.kind == Kind::reduce || i.kind == Kind::store)) {
                i.row = false;
            } else if (i.kind == Kind::formula || i.kind == Kind::cast) {
                i.row = std::all_of(i.args.begin(), i.args.end(), [&](uint16_t a) { return program_.code[a].row; });
                i.point = std::any_of(i.args.begin(), i.args.end(), [&](uint16_t a) { return program_.code[a].point; });
            }
        }
    }

    // Whether neighbours along the row are in different cache lines, and numerous enough that a kernel which transposes
    // block by block wins.
    bool is_better_copied(const Axes& axes, const Axes& points, size_t operand) const {
        constexpr int64_t kMany = 16 * 1024, kApart = 16;
        const int64_t step = axes.strides[operand].back();
        // With points, each element is read by many results.
        if (!points.dims.empty()) return step != 0 && step != 1 && count_read(points, operand) > 1;
        return step >= kApart && count_read(axes, operand) >= kMany;
    }
    // The axes of points come before the elements of a row.
    void copy_first(Axes& axes, Axes& points, size_t operand) {
        LoopBinding& binding = bindings_[operand];
        std::vector<std::pair<int64_t*, int64_t>> order;
        const size_t outer = axes.dims.size() - 1;
        for (size_t i = 0; i < outer; ++i) order.emplace_back(&axes.strides[operand][i], axes.dims[i]);
        for (size_t i = 0; i < points.dims.size(); ++i) order.emplace_back(&points.strides[operand][i], points.dims[i]);
        order.emplace_back(&axes.strides[operand][outer], axes.dims[outer]);
        for (const auto& [stride, size] : order) {
            if (*stride == 0) continue;
            binding.copied.push_back(size);
            binding.copied_strides.push_back(*stride);
        }
        int64_t step = 1;
        for (size_t i = order.size(); i-- > 0;) {
            const auto& [stride, size] = order[i];
            if (*stride == 0) continue;
            *stride = step;
            step *= size;
        }
    }

    const Piece& piece_;
    const Arrangements& arrangements_;
    LoopProgram program_;
    std::vector<LoopBinding> bindings_;
    std::vector<Strides> strides_;  // of the operands, along the axes of the domain
    std::unordered_map<const ir::Node*, uint16_t> values_;
    std::unordered_map<const ir::Node*, bool> row_of_;
    std::map<uint16_t, uint16_t> loads_;
};

}  // namespace

bool is_per_row(const Shape& shape, const Shape& domain, int rows) {
    int to = 0;
    for (int64_t d : shape) {
        if (d == 1) continue;
        while (to < rows && domain[to] == 1) ++to;
        if (to >= rows || domain[to] != d) return false;
        ++to;
    }
    for (; to < rows; ++to)
        if (domain[to] != 1) return false;
    return true;
}

bool can_compute(const Piece& piece, const ir::Node& node, const Arrangements& arrangements) {
    const Part part = part_of(node, arrangements);
    const Shape at = shape_at(node, part);
    const bool node_per_row = part == Part::element && !(at == piece.domain);
    for (const Value& arg : node.args) {
        if (!arg.is_node()) continue;
        const Arrangement* a = arrangements.find(arg.node());
        if (!a) return false;
        const auto strides = part == Part::product ? std::optional(Strides()) : seen(*a, at, piece);
        if (!strides) return false;
        if (std::find(piece.nodes.begin(), piece.nodes.end(), a->root) == piece.nodes.end() || a->root == &node)
            continue;
        // A sum over rows is complete only when the piece is, and a product reads other elements than it writes.
        if (part == Part::product || part_of(*a->root, arrangements) == Part::sum) return false;
        const bool per_row = gives_row(*a->root, piece, arrangements);
        if (node_per_row && !per_row) return false;
        if (a->offset != 0 || a->type.dtype != a->root->type.tensor.dtype) return false;
        if (!same_strides(*strides, own_strides(piece, per_row), piece.domain)) return false;
    }
    return true;
}

std::optional<Loop> build_loop(const Piece& piece, const Arrangements& arrangements,
                               const std::function<bool(const ir::Node*)>& is_needed) {
    return Writer(piece, arrangements).run(is_needed);
}

}  // namespace lunaria::graph
