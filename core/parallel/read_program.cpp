#include "core/parallel/read_program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/operator/op.h"
#include "core/parallel/planner.h"
#include "core/parallel/rule.h"
#include "core/run/profile.h"

namespace lunaria::parallel {

namespace {

class Reader {
  public:
    explicit Reader(const ReadSettings& settings)
        : settings_(settings), trained_(settings.trained.begin(), settings.trained.end()) {}

    GraphProgram read(const ir::Graph& graph) {
        for (const ir::Node* node : graph.body()) {
            if (node->kind == ir::NodeKind::item) {
                const auto made = results_.find(node->args[0].node());
                if (made != results_.end() && node->index < made->second.size())
                    results_[node] = {made->second[node->index]};
            } else if (node->op) {
                add(*node);
            }
        }
        find_batch();
        find_layers(program_);
        return {std::move(program_), std::move(nodes_), std::move(results_)};
    }

  private:
    int add_tensor(const TensorType& type, std::string name) {
        ProgramTensor t;
        t.shape.assign(type.shape.begin(), type.shape.end());
        const bool is_number = is_float(type.dtype);
        t.bytes_per_element =
            is_number && settings_.float_bytes ? settings_.float_bytes : static_cast<int>(size_of(type.dtype));
        t.needs_gradient = false;
        t.name = std::move(name);
        program_.tensors.push_back(std::move(t));
        return static_cast<int>(program_.tensors.size()) - 1;
    }

    // The tensor of an operand; -1: there is none.
    int tensor_of(const Value& value) {
        const ir::Node* node = value.is_node() ? value.node() : nullptr;
        if (!node) return value.is_tensor() && value.tensor() ? add_tensor(type_of(value), "") : -1;
        auto& known = results_[node];
        if (!known.empty()) return known[0];
        if (node->type.kind != ir::NodeType::Kind::tensor) return -1;
        // A parameter may have been found in several places.
        const bool is_trained = node->kind == ir::NodeKind::parameter && trained_.contains(node->name);
        const auto same = is_trained ? parameters_.find(node->name) : parameters_.end();
        const int tensor = same != parameters_.end() ? same->second : add_tensor(node->type.tensor, node->name);
        if (is_trained) {
            ProgramTensor& t = program_.tensors[static_cast<size_t>(tensor)];
            t.is_parameter = t.needs_gradient = true;
            parameters_[node->name] = tensor;
        } else if (node->kind == ir::NodeKind::parameter) {
            inputs_.insert(tensor);
        }
        known = {tensor};
        return tensor;
    }

    // The letter of an axis: the first of its factors that is larger than 1, since others give pieces with gaps.
    static int letter_of(const Rule& rule, const AxisFactors& axis) {
        for (int f : axis)
            if (rule.factors[static_cast<size_t>(f)].size > 1) return f;
        return -1;
    }

    Use use_of(const Rule& rule, int tensor, const std::vector<AxisFactors>& axes, std::vector<Letter>& letters) {
        Use use;
        use.tensor = tensor;
        for (const AxisFactors& axis : axes) {
            const int first = letter_of(rule, axis);
            use.letters.push_back(first);
            int large = 0;
            for (int f : axis)
                if (rule.factors[static_cast<size_t>(f)].size > 1) {
                    ++large;
                    if (f != first) letters[static_cast<size_t>(f)].can_be_cut = false;
                }
            if (large > 1) letters[static_cast<size_t>(first)].must_divide = true;
        }
        return use;
    }

    // Positions beyond its own part that a piece of two needs of an operand.
    static int64_t halo_of(const Rule& rule, int factor) {
        const int64_t size = rule.factors[static_cast<size_t>(factor)].size;
        auto cuts = rule.whole();
        cuts[static_cast<size_t>(factor)] = parallel::piece_of(size, 0, 2);
        const Work work = rule.work(std::move(cuts));
        int64_t most = 0;
        for (size_t i = 0; i < rule.operands.size() && i < work.operands.size(); ++i)
            for (size_t d = 0; d < rule.operands[i].axes.size(); ++d) {
                if (letter_of(rule, rule.operands[i].axes[d]) != factor) continue;
                const Interval needed = work.operands[i][d];
                const Interval own = parallel::piece_of(rule.operands[i].shape[static_cast<int>(d)], 0, 2);
                most = std::max({most, needed.end - own.end, own.begin - needed.begin});
            }
        return std::min(most, size / 2);
    }

    void add(const ir::Node& node) {
        const Call call(*node.op, node.args, dtype_of(node));
        const auto rule = letters_of(call);
        ProgramOperator op;
        op.name = node.op->name();
        if (node.span.chunk && node.span.line > 0) op.place = str(*node.span.chunk, ":", node.span.line);
        std::vector<TensorType> types;
        for (const Result& r : rule->results) types.push_back(r.type);
        if (types.empty()) collect(node.type, types);
        if (types.empty()) return;
        for (int f = 0; f < rule->count(); ++f) {
            const Factor& factor = rule->factors[static_cast<size_t>(f)];
            Letter letter;
            letter.name = factor.letter;
            letter.size = factor.size;
            letter.can_be_cut = factor.can_be_cut();
            letter.grain = factor.grain;
            letter.merges = factor.merge != Merge::none;
            letter.spreads = factor.kind == Kind::spread;
            if (factor.kind == Kind::move && factor.size > 1) letter.halo = halo_of(*rule, f);
            op.letters.push_back(std::move(letter));
        }
        bool has_gradient = false;
        for (const Operand& operand : rule->operands) {
            const Value& argument = node.args[operand.argument];
            const Value& value = operand.item >= 0 ? argument.items()[static_cast<size_t>(operand.item)] : argument;
            const int tensor = tensor_of(value);
            if (tensor < 0) continue;
            Use use = use_of(*rule, tensor, operand.axes, op.letters);
            use.is_linear = operand.is_linear;
            has_gradient = has_gradient || program_.tensors[static_cast<size_t>(tensor)].needs_gradient;
            op.operands.push_back(std::move(use));
        }
        if (op.operands.empty() && rule->operands.empty())
            for (const Value& argument : node.args)
                if (const int tensor = tensor_of(argument); tensor >= 0) {
                    const auto rank = program_.tensors[static_cast<size_t>(tensor)].shape.size();
                    has_gradient = has_gradient || program_.tensors[static_cast<size_t>(tensor)].needs_gradient;
                    op.operands.push_back({tensor, std::vector<int>(rank, -1), false});
                }
        std::vector<int>& made = results_[&node];
        for (size_t i = 0; i < types.size(); ++i) {
            const int tensor = add_tensor(types[i], "");
            program_.tensors[static_cast<size_t>(tensor)].needs_gradient = has_gradient && is_float(types[i].dtype);
            std::vector<AxisFactors> axes(static_cast<size_t>(types[i].shape.rank()));
            if (i < rule->results.size()) axes = rule->results[i].axes;
            op.results.push_back(use_of(*rule, tensor, axes, op.letters));
            made.push_back(tensor);
        }
        op.is_of_parameters = !op.operands.empty() && std::ranges::all_of(op.operands, [&](const Use& use) {
            return program_.tensors[static_cast<size_t>(use.tensor)].is_parameter || derived_.contains(use.tensor);
        });
        if (op.is_of_parameters) derived_.insert(made.begin(), made.end());
        op.is_jointly_linear = rule->is_jointly_linear;
        op.only_moves = rule->only_moves || node.op->only_moves;
        op.flops = product_flops(node, *rule, types);
        program_.operators.push_back(std::move(op));
        nodes_.push_back(&node);
    }

    static void collect(const ir::NodeType& type, std::vector<TensorType>& types) {
        if (type.kind == ir::NodeType::Kind::tensor) types.push_back(type.tensor);
        for (const ir::NodeType& item : type.items) collect(item, types);
    }

    static DType dtype_of(const ir::Node& node) {
        return node.type.kind == ir::NodeType::Kind::tensor ? node.type.tensor.dtype : DType::f32;
    }

    // What an operator computes if it is a product of two operands: a letter is summed that both have.
    static double product_flops(const ir::Node& node, const Rule& rule, std::span<const TensorType> types) {
        bool is_product = false;
        for (int f = 0; f < rule.count() && !is_product; ++f) {
            int with = 0;
            for (const Operand& o : rule.operands) with += rule.occurs(f, o.axes);
            const bool is_summed = !rule.results.empty() && !rule.occurs(f, rule.results[0].axes);
            is_product = with >= 2 && is_summed && rule.factors[static_cast<size_t>(f)].merge == Merge::sum;
        }
        return is_product ? flops_of(*node.op, node.args, types) : 0;
    }

    // Letters that cut the first axis of an input, and what they go over into.
    void find_batch() {
        std::set<std::pair<int, int>> axes;  // tensor and axis
        for (int t : inputs_)
            if (program_.tensors[static_cast<size_t>(t)].shape.size() > 0) axes.emplace(t, 0);
        for (ProgramOperator& op : program_.operators)
            for (const Use& operand : op.operands)
                for (size_t d = 0; d < operand.letters.size(); ++d) {
                    const int letter = operand.letters[d];
                    if (letter < 0 || !axes.contains({operand.tensor, static_cast<int>(d)})) continue;
                    // Statistics over a batch are those of each rank's part of it, as in data parallel training.
                    op.letters[static_cast<size_t>(letter)].is_batch = true;
                    op.letters[static_cast<size_t>(letter)].spreads = false;
                    for (const Use& result : op.results)
                        for (size_t e = 0; e < result.letters.size(); ++e)
                            if (result.letters[e] == letter) axes.emplace(result.tensor, static_cast<int>(e));
                }
    }

    const ReadSettings& settings_;
    const std::set<std::string> trained_;
    Program program_;
    std::vector<const ir::Node*> nodes_;
    std::map<const ir::Node*, std::vector<int>> results_;
    std::set<int> inputs_, derived_;         // derived: from parameters alone
    std::map<std::string, int> parameters_;  // trained ones
};

}  // namespace

GraphProgram read_program(const ir::Graph& graph, const ReadSettings& settings) { return Reader(settings).read(graph); }

}  // namespace lunaria::parallel
