#include "jit/parallel/partition.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/base/error.h"
#include "core/ir/builder.h"
#include "core/ir/printer.h"
#include "core/ir/text.h"
#include "core/parallel/dispatch.h"
#include "core/parallel/division.h"
#include "core/tensor/device.h"
#include "jit/graph/divided.h"
#include "jit/graph/passes.h"

namespace lunaria::parallel {

namespace {

// Builds the pieces of one call. All of them draw the same random numbers.
class PieceBuilder final : public Builder {
  public:
    explicit PieceBuilder(ir::GraphBuilder& inner) : inner_(inner) {}

    void begin_piece() { draws_ = 0; }
    Value emit(const Op& op, std::span<const Value> args) override {
        if (!op.draws()) return inner_.emit(op, args);
        if (draws_ == drawn_.size()) drawn_.push_back(inner_.emit(op, args));
        return drawn_[draws_++];
    }
    Value item(const Value& results, size_t i) override { return inner_.item(results, i); }
    Value tuple(std::vector<Value> items) override { return inner_.tuple(std::move(items)); }

  private:
    ir::GraphBuilder& inner_;
    std::vector<Value> drawn_;
    size_t draws_ = 0;
};

// A value of the graph, on the ranks.
struct Spread {
    Laid laid;  // without pieces
    bool is_host = true;
    std::vector<Value> pieces;               // nodes of the graph in pieces, for each position held here
    const Distribution* made = laid.layout;  // before it was completed
};

bool is_operand(const Value& v) { return v.is_node() || v.is_tensor(); }

class Partitioner {
  public:
    Partitioner(ir::Graph& whole, std::span<const Placed> inputs) : whole_(whole) {
        result_.graph = std::make_unique<ir::Graph>(whole.name);
        builder_.emplace(*result_.graph);
        for (size_t i = 0; i < inputs.size(); ++i) add_input(*whole.parameters()[i], inputs[i]);
    }

    Partition run() {
        const size_t count = whole_.body().size();
        for (size_t i = 0; i < count; ++i) divide(*whole_.body()[i]);
        std::vector<Value> results;
        for (const Value& v : whole_.result.items()) result_.outputs.push_back(output(values_[id_of(v)], results));
        for (size_t i = 0; i < result_.inputs.size(); ++i)
            if (values_[i].laid.layout != result_.inputs[i].layout)
                result_.completed.push_back({i, output(values_[i], results)});
        result_.graph->result = Value::list(std::move(results));
        for (const auto& op : result_.operators) result_.moves |= op->moves();
        for (const auto& [node, ids] : ids_) result_.types[node->id] = type_text(*node);
        return std::move(result_);
    }

  private:
    void add_input(ir::Node& parameter, const Placed& given) {
        Spread value{{given.layout, given.dtype, given.shape, {}}, given.is_host, {}};
        Placed placed = given;
        placed.pieces.clear();
        std::map<std::vector<int64_t>, Value> made;
        const std::vector<int64_t> held = given.layout ? positions(given.layout->mesh()) : std::vector<int64_t>{0};
        for (size_t k = 0; k < held.size(); ++k) {
            Value& piece = made[given.layout ? place_of(*given.layout, held[k]) : std::vector<int64_t>{}];
            if (piece.is_nil()) {
                const Shape shape = given.layout ? given.layout->piece_shape(given.shape, held[k]) : given.shape;
                piece = Value(
                    result_.graph->add_parameter(parameter.name, ir::NodeType::of({given.dtype, shape, nullptr})));
                placed.pieces.push_back(k);
            }
            value.pieces.push_back(piece);
        }
        ids_[&parameter] = {values_.size()};
        values_.push_back(std::move(value));
        result_.inputs.push_back(std::move(placed));
    }

    // Where a position holds the same piece as others: its coordinates along the axes that make a difference.
    static std::vector<int64_t> place_of(const Distribution& layout, int64_t position) {
        std::vector<int64_t> place;
        for (int m = 0; m < layout.mesh().axes(); ++m)
            place.push_back(has_axis(layout.replicated_axes(), m) ? 0 : layout.mesh().coordinate(position, m));
        return place;
    }
    static std::vector<int64_t> positions(const Mesh& mesh) {
        std::vector<int64_t> held = held_positions(mesh);
        if (held.empty()) throw state_error("mesh", "this rank is none of the mesh");
        return held;
    }

    Placed output(const Spread& value, std::vector<Value>& results) const {
        Placed placed{value.laid.layout, value.is_host, value.laid.dtype, value.laid.shape, {}};
        for (const Value& piece : value.pieces) {
            const auto same = std::ranges::find_if(
                results, [&](const Value& v) { return v.is_node() && piece.is_node() && v.node() == piece.node(); });
            placed.pieces.push_back(static_cast<size_t>(same - results.begin()));
            if (same == results.end()) results.push_back(piece);
        }
        return placed;
    }

    // The value that an operand is.
    size_t id_of(const Value& v) {
        if (v.is_node()) {
            if (const auto found = ids_.find(v.node()); found != ids_.end()) return found->second.at(0);
            if (v.node()->kind != ir::NodeKind::constant) throw state_error("partition", "a value is not known");
        }
        const Tensor& t = v.is_node() ? v.node()->constant.tensor() : v.tensor();
        if (t.device()) throw state_error("partition", "a constant is on a device");
        Spread value{{nullptr, t.dtype(), t.shape(), {}}, true, {Value(result_.graph->add_constant(Value(t)))}};
        values_.push_back(std::move(value));
        if (v.is_node()) ids_[v.node()] = {values_.size() - 1};
        return values_.size() - 1;
    }

    template <class F>
    static Value with_operands(const Value& v, F&& f) {
        if (is_operand(v)) return f(v);
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(is_operand(item) ? f(item) : item);
        return Value::list(std::move(items));
    }

    // The mesh of the call: that of its largest operand (as in dispatch).
    const Mesh* mesh_of(const ir::Node& node) {
        const Mesh* mesh = nullptr;
        int64_t most = -1;
        for (const Value& arg : node.args)
            with_operands(arg, [&](const Value& v) {
                const Laid& x = values_[id_of(v)].laid;
                if (x.layout && x.shape.size() > most) {
                    mesh = &x.layout->mesh();
                    most = x.shape.size();
                }
                return v;
            });
        return mesh;
    }

    void divide(ir::Node& node) {
        if (node.kind == ir::NodeKind::item) {
            ids_[&node] = {ids_.at(node.args[0].node()).at(node.index)};
            return;
        }
        if (node.op && graph::is_layout(*node.op)) return lay_out(node);
        if (!node.op || node.op->host_fn || node.op->writes())
            throw state_error("partition", "a step is no operator on tensors that gives new ones");
        const Op& op = *node.op;
        builder_->span = node.span;
        const Mesh* mesh = mesh_of(node);
        if (!mesh) return run_everywhere(node, nullptr, "");
        if (runs_expanded(op, true)) {
            ir::GraphBuilder builder(whole_);
            builder.span = node.span;
            const size_t first = whole_.body().size();
            return replace(node, first, graph::expansion_of(node, builder));
        }
        if (op.is_ordered()) throw state_error(op.name(), "is for tensors of one rank");
        auto made = rule_of(op, node.args);
        const Rule& rule = *result_.rules.emplace_back(std::move(made));
        if (std::ranges::any_of(rule.results, [](const Result& r) { return !r.type.shape.known(); }))
            throw state_error(op.name(), "the sizes of its results follow from values");
        if (rule.operands.empty() || rule.results.empty())
            return run_everywhere(node, mesh, "the sizes of its results follow from values");
        run_divided(node, *mesh, rule);
    }

    // The program's own layouts: by number (0: whole, in host memory), or that of another value.
    void lay_out(ir::Node& node) {
        builder_->span = node.span;
        const Spread x = values_[id_of(node.args[0])];
        const Value& given = node.args[1];
        const Distribution* to = nullptr;
        if (is_operand(given)) {
            to = values_[id_of(given)].laid.layout;
            if (to) to = to->complete();
        } else if (given.kind() == Value::Kind::integer && given.integer() != 0) {
            to = &layout_numbered(given.integer(), x.laid.shape);
        }
        if (to) return set(node, {moved(x, *to, {})});
        Spread whole =
            x.laid.layout ? moved(x, *Distribution::replicated(x.laid.layout->mesh(), x.laid.shape.rank()), {}) : x;
        whole.laid.layout = whole.made = nullptr;
        whole.is_host = true;
        whole.pieces.resize(1);
        set(node, {std::move(whole)});
    }

    // The node is what a composition of operators gives that has been written behind the graph.
    void replace(ir::Node& node, size_t first, const Value& result) {
        const size_t last = whole_.body().size();
        for (size_t i = first; i < last; ++i) divide(*whole_.body()[i]);
        std::vector<size_t> ids;
        if (result.is_list())
            for (const Value& v : result.items()) ids.push_back(id_of(v));
        else if (node.type.kind == ir::NodeType::Kind::list)
            ids = ids_.at(result.node());
        else
            ids.push_back(id_of(result));
        ids_[&node] = std::move(ids);
    }

    // Every rank computes the whole call.
    void run_everywhere(ir::Node& node, const Mesh* mesh, std::string_view why) {
        bool is_host = !mesh;
        std::vector<Value> args;
        for (const Value& arg : node.args)
            args.push_back(with_operands(arg, [&](const Value& v) {
                const Spread& x = values_[id_of(v)];
                is_host &= x.is_host;
                if (!x.laid.layout) return x.pieces[0];
                const auto& to = *Distribution::replicated(x.laid.layout->mesh(), x.laid.shape.rank());
                return moved(x, to, {.op = node.op, .why = why}).pieces[0];
            }));
        const Value made = builder_->emit(*node.op, args);
        std::vector<Spread> results;
        for (size_t r = 0; r < count_of(node); ++r) {
            const TensorType& type = type_of_result(node, r);
            const Distribution* layout = mesh ? Distribution::replicated(*mesh, type.shape.rank()) : nullptr;
            const size_t held = mesh ? positions(*mesh).size() : 1;
            const Value piece = piece_of_result(node, made, r, type);
            results.push_back({{layout, type.dtype, type.shape, {}}, is_host, std::vector<Value>(held, piece)});
        }
        set(node, std::move(results));
    }

    static size_t count_of(const ir::Node& node) {
        return node.type.kind == ir::NodeType::Kind::list ? node.type.items.size() : 1;
    }
    static const TensorType& type_of_result(const ir::Node& node, size_t r) {
        const ir::NodeType& type = node.type.kind == ir::NodeType::Kind::list ? node.type.items[r] : node.type;
        if (type.kind != ir::NodeType::Kind::tensor) throw state_error("partition", "a result is no tensor");
        return type.tensor;
    }
    Value piece_of_result(const ir::Node& node, const Value& made, size_t r, const TensorType& type) {
        Value v = node.type.kind == ir::NodeType::Kind::list ? builder_->item(made, r) : made;
        if (v.is_tensor()) v = Value(result_.graph->add_constant(v));
        if (!v.is_node() || v.node()->type.kind != ir::NodeType::Kind::tensor)
            throw state_error("partition", "a piece is no tensor");
        const TensorType& has = v.node()->type.tensor;
        if (has.dtype != type.dtype || !(has.shape == type.shape))
            throw state_error("partition", str("a piece of ", node.op->name(), " is ", name_of(has.dtype), has.shape,
                                               " and should be ", name_of(type.dtype), type.shape));
        return v;
    }
    void set(const ir::Node& node, std::vector<Spread> results) {
        std::vector<size_t>& ids = ids_[&node];
        for (Spread& r : results) {
            ids.push_back(values_.size());
            values_.push_back(std::move(r));
        }
    }

    void run_divided(ir::Node& node, const Mesh& mesh, const Rule& rule) {
        std::vector<Spread> given;
        std::vector<Laid> laid;
        std::vector<size_t> ids;
        for (size_t i = 0; i < rule.operands.size(); ++i) {
            const Operand& o = rule.operands[i];
            const Value& argument = node.args[o.argument];
            ids.push_back(id_of(o.item < 0 ? argument : argument.items()[static_cast<size_t>(o.item)]));
            given.push_back(values_[ids.back()]);
            // One of another mesh comes whole.
            if (const Distribution* from = given.back().laid.layout; from && &from->mesh() != &mesh)
                given.back() =
                    moved(Spread(given.back()), *Distribution::replicated(mesh, from->rank()), {node.op, "", &rule, i});
            Laid& lies = given.back().laid;
            if (node.op->reads_type_only && lies.layout) lies.layout = lies.layout->complete();
            laid.push_back(lies);
        }
        const Division division(rule, mesh, laid);
        if (division.is_spread()) {
            ir::GraphBuilder builder(whole_);
            builder.span = node.span;
            const size_t first = whole_.body().size();
            if (const Value result = rule.expanded(builder, node.args); !result.is_nil())
                return replace(node, first, result);
        }
        const std::vector<int64_t> held = positions(mesh);
        std::vector<Work> works;
        for (int64_t p : held) works.push_back(rule.work(division.cuts(p)));
        std::vector<std::vector<Value>> operands;
        for (size_t i = 0; i < given.size(); ++i)
            operands.push_back(parts(node, rule, division, i, given[i], ids[i], works));
        run_pieces(node, rule, division, held, works, operands);
    }

    // The parts of an operand that the positions held here need.
    std::vector<Value> parts(const ir::Node& node, const Rule& rule, const Division& division, size_t i,
                             const Spread& given, size_t id, std::span<const Work> works) {
        const Mesh& mesh = division.mesh();
        const Distribution& layout = *division.operand(i);
        const Cause cause{node.op, "", &rule, i};
        Spread here = moved(given, layout, cause);
        // Sums that had to be completed for this call stay complete for the next one.
        Spread& value = values_[id];
        const Distribution* before = given.laid.layout;
        if (before && before->partial() && !layout.partial() && value.laid.layout == before) {
            value = here;
            value.made = before;
        }
        const std::vector<int64_t> held = positions(mesh);
        if (!division.is_shifted()) {
            for (size_t p = 0; p < held.size(); ++p)
                here.pieces[p] = narrowed(here.pieces[p], layout.piece(here.laid.shape, held[p]), works[p].operands[i]);
            return here.pieces;
        }
        std::vector<Region> needed;
        bool others = false;
        for (int64_t p = 0; p < mesh.count(); ++p) {
            needed.push_back(rule.work(division.cuts(p)).operands[i]);
            others |= needed.back() != layout.piece(here.laid.shape, p);
        }
        if (!others) return here.pieces;
        std::vector<Shape> shapes;
        for (int64_t p : held) shapes.push_back(shape_of(needed[static_cast<size_t>(p)]));
        return call(MoveOp::to_parts(here.laid, std::move(needed), cause, place()), here, shapes);
    }

    void run_pieces(const ir::Node& node, const Rule& rule, const Division& division, std::span<const int64_t> held,
                    std::span<const Work> works, std::span<const std::vector<Value>> operands) {
        PieceBuilder builder(*builder_);
        std::vector<std::vector<Value>> pieces;  // by position and result
        for (size_t p = 0; p < held.size(); ++p) {
            if (const size_t same = equal_work(p, works, operands); same < p) {
                pieces.push_back(pieces[same]);
                continue;
            }
            builder.begin_piece();
            const Value made = rule.run(builder, local(node, rule, operands, p), works[p]);
            std::vector<Value> results;
            for (size_t r = 0; r < rule.results.size(); ++r) {
                const TensorType& type = rule.results[r].type;
                const Shape shape = division.result(r)->piece_shape(type.shape, held[p]);
                results.push_back(piece_of_result(node, made, r, {type.dtype, shape, nullptr}));
            }
            pieces.push_back(std::move(results));
        }
        std::vector<Spread> results;
        for (size_t r = 0; r < rule.results.size(); ++r) {
            const TensorType& type = rule.results[r].type;
            Spread value{{division.result(r), type.dtype, type.shape, {}}, false, {}};
            for (const auto& of_position : pieces) value.pieces.push_back(of_position[r]);
            results.push_back(std::move(value));
        }
        set(node, std::move(results));
    }

    // A position before this one whose work is the same on the same values.
    static size_t equal_work(size_t p, std::span<const Work> works, std::span<const std::vector<Value>> operands) {
        for (size_t q = 0; q < p; ++q) {
            if (works[q].cuts != works[p].cuts) continue;
            if (std::ranges::all_of(operands, [&](const auto& of) { return of[q].node() == of[p].node(); })) return q;
        }
        return p;
    }

    static std::vector<Value> local(const ir::Node& node, const Rule& rule,
                                    std::span<const std::vector<Value>> operands, size_t p) {
        std::vector<Value> args = node.args;
        for (size_t i = 0; i < operands.size(); ++i) {
            const Operand& o = rule.operands[i];
            if (o.item < 0) {
                args[o.argument] = operands[i][p];
                continue;
            }
            std::vector<Value> items = args[o.argument].items();
            items[static_cast<size_t>(o.item)] = operands[i][p];
            args[o.argument] = Value::list(std::move(items));
        }
        return args;
    }

    // A part of a piece.
    Value narrowed(const Value& piece, const Region& has, const Region& wanted) {
        Expr y(*builder_, piece);
        for (size_t k = 0; k < wanted.size(); ++k)
            if (wanted[k].size() != has[k].size())
                y = builder_->call("narrow",
                                   {y, static_cast<int64_t>(k),
                                    wanted[k].empty() ? int64_t{0} : wanted[k].begin - has[k].begin, wanted[k].size()});
        return y.value();
    }

    std::string place() const { return ir::place_text(builder_->span); }

    // The value in another layout.
    Spread moved(const Spread& x, const Distribution& to, const Cause& cause) {
        if (x.laid.layout == &to) return x;
        Spread result{{&to, x.laid.dtype, x.laid.shape, {}}, false, {}};
        const std::vector<int64_t> held = positions(to.mesh());
        const Distribution* from = x.laid.layout;
        if (!from || (from->is_replicated() && &from->mesh() == &to.mesh() && !to.partial())) {
            std::map<std::vector<int64_t>, Value> made;
            for (int64_t p : held) {
                Value& piece = made[place_of(to, p)];
                if (piece.is_nil()) piece = narrowed(x.pieces[0], region_of(x.laid.shape), to.piece(x.laid.shape, p));
                result.pieces.push_back(piece);
            }
            return result;
        }
        std::unique_ptr<MoveOp> op = MoveOp::to_layout(x.laid, to, cause, place());
        if (op->only_slices()) {
            for (size_t p = 0; p < held.size(); ++p)
                result.pieces.push_back(
                    narrowed(x.pieces[p], from->piece(x.laid.shape, held[p]), to.piece(x.laid.shape, held[p])));
            return result;
        }
        std::vector<Shape> shapes;
        for (int64_t p : held) shapes.push_back(to.piece_shape(x.laid.shape, p));
        const std::vector<Value> got = call(std::move(op), x, shapes);
        std::map<std::vector<int64_t>, Value> same;
        for (size_t p = 0; p < held.size(); ++p) {
            Value& piece = same[place_of(to, held[p])];
            if (piece.is_nil()) piece = got[p];
            result.pieces.push_back(piece);
        }
        return result;
    }
    static Region region_of(const Shape& shape) {
        Region region;
        for (int64_t size : shape) region.push_back({0, size});
        return region;
    }

    // A node of communication.
    std::vector<Value> call(std::unique_ptr<MoveOp> op, const Spread& x, std::span<const Shape> shapes) {
        std::vector<ir::NodeType> types;
        for (const Shape& shape : shapes) types.push_back(ir::NodeType::of({x.laid.dtype, shape, nullptr}));
        const Op& kept = *result_.operators.emplace_back(std::move(op));
        const auto& described = result_.operators.back()->described();
        ir::Node* node = result_.graph->add_call(kept, {Value::list(x.pieces), Value(std::string_view(described))},
                                                 ir::NodeType::list(std::move(types)));
        node->span = builder_->span;
        std::vector<Value> items;
        for (size_t k = 0; k < shapes.size(); ++k) {
            items.emplace_back(result_.graph->add_item(*node, k));
            items.back().node()->span = builder_->span;
        }
        return items;
    }

    std::string type_text(const ir::Node& node) const {
        const auto found = ids_.find(&node);
        if (found == ids_.end()) return ir::to_string(node.type);
        std::string types;
        for (size_t id : found->second) {
            const Laid& x = values_[id].laid;
            const Distribution* layout = values_[id].made;
            types += types.empty() ? "" : ", ";
            types += layout ? layout->text(x.dtype, x.shape) : str(name_of(x.dtype), x.shape);
        }
        return found->second.size() == 1 ? types : "{" + types + "}";
    }

    ir::Graph& whole_;
    Partition result_;
    std::optional<ir::GraphBuilder> builder_;  // of the graph in pieces
    std::vector<Spread> values_;
    std::unordered_map<const ir::Node*, std::vector<size_t>> ids_;  // the values that a node gives
};

}  // namespace

Partition partition(ir::Graph& graph, std::span<const Placed> inputs) {
    const PlaceScope host(nullptr);
    return Partitioner(graph, inputs).run();
}

}  // namespace lunaria::parallel
