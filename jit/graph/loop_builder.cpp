#include "jit/graph/loop_builder.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/cache_size.h"
#include "core/row_pass.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

using Kind = LoopInstruction::Kind;

// Results of this many bytes and more do not stay in the last cache: storing them past it saves reading them first.
// Where they would stay, it costs three times as much.
int64_t streamed_bytes() {
    static const int64_t bytes = std::max(int64_t{24} << 20, last_cache_bytes() / 4 * 3);
    return bytes;
}

// Strides of `a` along the axes of a shape that it is broadcast to.
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

// The shape that a node's operands are seen at.
Shape shape_at(const ir::Node& node, Part part) {
    return part == Part::element || part == Part::product ? node.type.tensor.shape : static_type(node.args[0])->shape;
}

class Writer {
  public:
    Writer(const Piece& piece, const Arrangements& arrangements) : piece_(piece), arrangements_(arrangements) {}

    std::optional<Loop> run(const std::function<bool(const ir::Node*)>& is_needed) {
        program_.has_rows = piece_.rows >= 0;
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
            LoopInstruction store{
                .kind = sums ? Kind::add : Kind::store, .dtype = node->type.tensor.dtype, .row = row_of_[node]};
            const Strides strides = sums ? sum_strides(*node) : own_strides(piece_, row_of_[node]);
            store.index = operand(node, 0, strides, node->type.tensor.dtype, true);
            program_.has_sums |= sums;
            store.args = {values_[node]};
            program_.code.push_back(std::move(store));
            bytes += node->type.tensor.shape.size() * static_cast<int64_t>(size_of(node->type.tensor.dtype));
        }
        if (program_.code.size() > 4000) return {};
        return finish(bytes);
    }

  private:
    // What the entry of an operator writes its pass over the rows with.
    class RowWriter : public RowPass {
      public:
        RowWriter(Writer& writer, const ir::Node& node, const Shape& at, DType t)
            : RowPass(call_), writer_(writer), call_(*node.op, node.args, t), at_(at) {}

        bool failed = false;  // an operand cannot be read

        RowValue in(size_t i) override {
            const auto v = writer_.value(call_.args[i], at_, call_.dtype);
            failed |= !v;
            return {*this, v.value_or(0)};
        }
        RowValue number(double x) override { return {*this, writer_.number(x, call_.dtype)}; }
        double length() const override {
            const Piece& piece = writer_.piece_;
            int64_t length = 1;
            for (int i = piece.rows; i < piece.domain.rank(); ++i) length *= piece.domain[i];
            return static_cast<double>(length);
        }
        RowValue formula(std::string_view name, std::initializer_list<RowValue> args) override {
            std::vector<uint16_t> values;
            for (RowValue v : args) values.push_back(v.index());
            return {*this, writer_.formula(name, std::move(values), call_.dtype)};
        }
        RowValue sum(RowValue x) override { return {*this, writer_.reduce("sum", x.index())}; }
        RowValue max(RowValue x) override { return {*this, writer_.reduce("max", x.index())}; }
        RowValue min(RowValue x) override { return {*this, writer_.reduce("min", x.index())}; }

      private:
        Writer& writer_;
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
    uint16_t number(double x, DType t) { return constant(x, static_cast<int64_t>(x), t); }
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
    uint16_t reduce(std::string_view name, uint16_t v) {
        return add({.kind = Kind::reduce,
                    .dtype = dtype(v),
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

    // Along the axes of the domain, of a value that lacks those that are summed over.
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
        // One constant seen as many.
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
        return pass.failed ? std::nullopt : std::optional(y.index());
    }

    std::optional<uint16_t> write_element(const ir::Node& node, const Shape& at, DType result) {
        if (node.op->fuses_as == Fusion::cast) {
            auto x = value(node.args[0], at, static_type(node.args[0])->dtype);
            return x ? std::optional(cast(*x, result)) : std::nullopt;
        }
        const DType t = element_dtype(node);
        // Halves are stored, and rounded to, after every operator; in between they are floats.
        const DType computed = is_half(t) ? DType::f32 : t;
        std::vector<uint16_t> args;
        for (size_t i = 0; i < node.args.size(); ++i) {
            const Value& v = node.args[i];
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

    // Merges axes that all operands step through evenly, and says how each operand steps along a row.
    std::optional<Loop> finish(int64_t bytes) {
        std::vector<int64_t> dims;
        std::vector<std::vector<int64_t>> strides(bindings_.size());
        int first_of_row = 0;  // of the merged axes
        for (int i = 0; i < piece_.domain.rank(); ++i) {
            const int64_t size = piece_.domain[i];
            const bool starts_row = i == piece_.rows;
            if (starts_row) first_of_row = static_cast<int>(dims.size());
            if (size == 1) continue;
            bool merges = !dims.empty() &&
                          !(piece_.rows >= 0 && i >= piece_.rows && static_cast<int>(dims.size()) == first_of_row);
            for (size_t k = 0; merges && k < bindings_.size(); ++k) merges = strides[k].back() == strides_[k][i] * size;
            if (merges) {
                dims.back() *= size;
                for (size_t k = 0; k < bindings_.size(); ++k) strides[k].back() = strides_[k][i];
                continue;
            }
            dims.push_back(size);
            for (size_t k = 0; k < bindings_.size(); ++k) strides[k].push_back(strides_[k][i]);
        }
        if (piece_.rows >= 0) {
            int run = static_cast<int>(dims.size()) - first_of_row;
            if (piece_.rows == piece_.domain.rank()) run = 0;
            if (run > 1) return {};
            if (run == 0) push_axis(dims, strides);
        } else if (dims.empty()) {
            push_axis(dims, strides);
        }
        Loop loop;
        const size_t outer = dims.size() - 1;
        program_.outer_rank = static_cast<int>(outer);
        loop.inner = dims.back();
        loop.sizes = dims;
        for (size_t i = 0; i < outer; ++i) loop.rows *= dims[i];
        for (size_t k = 0; k < bindings_.size(); ++k) {
            if (is_better_copied(dims, strides[k])) copy_first(dims, strides[k], bindings_[k]);
            int64_t step = strides[k].back();
            program_.operands[k].step = step == 0   ? LoopOperand::Step::none
                                        : step == 1 ? LoopOperand::Step::dense
                                                    : LoopOperand::Step::wide;
            for (size_t i = 0; i < outer; ++i) loop.sizes.push_back(strides[k][i]);
            if (step != 0 && step != 1) loop.sizes.push_back(step);
        }
        // Without values per row, what does not step along it is known before the row starts all the same.
        for (LoopInstruction& i : program_.code)
            if (i.kind == Kind::load && program_.operands[i.index].step == LoopOperand::Step::none) i.row = true;
        lift();
        program_.streams = !program_.has_rows && !program_.has_sums && outer == 0 && bytes >= streamed_bytes();
        loop.program = std::move(program_);
        loop.operands = std::move(bindings_);
        return loop;
    }

    // Neighbours along the row lie in different lines of the cache, and there are enough of them that a kernel which
    // transposes block by block wins.
    bool is_better_copied(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) const {
        constexpr int64_t kMany = 16 * 1024, kApart = 16;
        int64_t count = 1;
        for (size_t i = 0; i < dims.size(); ++i)
            if (strides[i] != 0) count *= dims[i];
        return strides.back() >= kApart && count >= kMany;
    }
    static void copy_first(const std::vector<int64_t>& dims, std::vector<int64_t>& strides, LoopBinding& binding) {
        for (size_t i = 0; i < dims.size(); ++i) {
            if (strides[i] == 0) continue;
            binding.copied.push_back(dims[i]);
            binding.copied_strides.push_back(strides[i]);
        }
        int64_t step = 1;
        for (size_t i = dims.size(); i-- > 0;) {
            if (strides[i] == 0) continue;
            strides[i] = step;
            step *= dims[i];
        }
    }

    static void push_axis(std::vector<int64_t>& dims, std::vector<std::vector<int64_t>>& strides) {
        dims.push_back(1);
        for (auto& s : strides) s.push_back(dims.size() == 1 || s.empty() ? 1 : 0);
    }

    // Formulas of values per row are such values themselves.
    void lift() {
        for (LoopInstruction& i : program_.code) {
            if (i.kind != Kind::formula && i.kind != Kind::cast) continue;
            i.row = std::all_of(i.args.begin(), i.args.end(), [&](uint16_t a) { return program_.code[a].row; });
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
        // A sum over rows is complete when the piece is, and a product reads other elements than it makes.
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
