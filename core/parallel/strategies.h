// The cheapest way to divide a program among the ranks of a mesh: for each operator, which of its letters (the factors
// of its axes, core/parallel/rule.h) each axis of the mesh cuts. What operators need and give decides what has to be
// moved between them, forward and backward, and what every rank keeps.
//
// A program is the forward pass. What its derivative communicates follows from it: the gradient of an operand is
// incomplete along what cuts a letter that the operand lacks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/parallel/cost.h"
#include "core/parallel/elimination.h"

namespace lunaria::parallel {

struct Letter {
    std::string name;
    int64_t size = 1;
    bool can_be_cut = true;
    bool must_divide = false;  // parts of equal size only
    int64_t grain = 1;         // cut in multiples of this
    // Where a result lacks the letter: its pieces are to be put together.
    bool merges = false;
    // Reduced and used again: each cut sums one number for every row of the result, forward and backward.
    bool spreads = false;
    // Positions of the neighbours that a piece needs.
    int64_t halo = 0;
    // Cut by micro-batches before the mesh cuts it.
    bool is_batch = false;
};

struct ProgramTensor {
    std::vector<int64_t> shape;
    int bytes_per_element = 2;
    bool is_parameter = false;
    bool needs_gradient = true;
    std::string name;
};

// A tensor of an operator, and for each axis the letter by which it is cut; -1: none.
struct Use {
    int tensor = 0;
    std::vector<int> letters;
    bool is_linear = false;  // incomplete sums pass through it
};

struct ProgramOperator {
    std::string name, place;
    std::vector<Letter> letters;
    std::vector<Use> operands, results;
    bool is_jointly_linear = false;  // incomplete sums pass if all operands are incomplete
    bool only_moves = false;         // no arithmetic: nothing is kept for the backward pass
    bool is_of_parameters = false;   // no operand depends on anything else
    double flops = 0;                // of products
    int layer = -1;                  // equal layers have equal operators; -1: outside of layers
};

// Operators in an order in which they can run.
struct Program {
    std::vector<ProgramTensor> tensors;
    std::vector<ProgramOperator> operators;
};

// What strategies of all meshes ask of a program, found once. The program must outlive it.
class ProgramIndex {
  public:
    explicit ProgramIndex(const Program& program);

    struct Reading {
        int op = 0;
        size_t operand = 0;
    };
    const Program& program;
    std::vector<int> producer, uses;            // of each tensor; -1: it comes from outside
    std::vector<std::vector<Reading>> readers;  // of each tensor
    std::vector<int> kind;                      // of each operator; equal ones differ in their tensors only
    // Of each operator: the one in the first of its equal layers that is at the same place; itself outside of layers.
    std::vector<int> first;

    // Whether the operator's layer has made the tensor.
    bool is_inside(const ProgramOperator& op, int tensor) const;

  private:
    std::string text_of(const ProgramOperator& op) const;
};

// Axes from major to minor, as ranks are numbered.
struct MeshAxis {
    std::string name;
    int64_t size = 1;
};
using MeshAxes = std::vector<MeshAxis>;

// What an axis of the mesh does in an operator or a tensor: the number of a letter or tensor axis, or one of these.
constexpr int kWhole = -1;       // every rank has or does the same
constexpr int kIncomplete = -2;  // the sum over the ranks is the value
// Of an operator on parameters: every rank does the same, with a term of its results' gradient. Rules are linear in
// gradients, so that it gives a term of its operands' gradient, which is summed once for the parameter.
constexpr int kTermBack = -3;
using Cuts = std::vector<int>;  // for each axis of the mesh

// What brings a tensor from one form to another, along one axis of the mesh.
enum class Conversion : uint8_t { slice, reduce_scatter, all_to_all, all_reduce, all_gather };
const char* name_of(Conversion kind);

// Calls f(kind, axis of the mesh, form before, form after) for each step from one form to another: slices first, which
// cost nothing and make the rest smaller; then sums and exchanges, and what has to be whole last; in each the nearest
// axis first.
template <class F>
void for_each_conversion(const Cuts& from, const Cuts& to, const F& f) {
    using enum Conversion;
    const auto kind_of = [](int before, int after) {
        if (before == kWhole) return slice;
        if (before == kIncomplete) return after >= 0 ? reduce_scatter : all_reduce;
        return after >= 0 ? all_to_all : all_gather;
    };
    Cuts before = from, now = from;
    for (Conversion kind : {slice, reduce_scatter, all_to_all, all_reduce, all_gather})
        for (size_t a = from.size(); a-- > 0;) {
            if (now[a] == to[a] || kind_of(now[a], to[a]) != kind) continue;
            now[a] = to[a];
            f(kind, a, before, now);
            before[a] = to[a];
        }
}

struct PlanSettings {
    int64_t micro_batches = 1;
    // Sharded optimizer: 0 none, 1 states, 2 gradients, 3 weights.
    int level = 0;
    double state_bytes = 12;    // that the optimizer keeps for each parameter
    double gradient_bytes = 2;  // of a parameter, while they are summed
    bool trains = true;
    bool remakes = false;     // layers keep their inputs alone and run forward once more
    int64_t live = 1;         // micro-batches whose activations are kept at a time
    bool ties_layers = true;  // equal layers get equal cuts
};

// Of one operator with its cuts on one rank, for a whole batch.
struct OperatorCost {
    double forward = 0, backward = 0;  // seconds of computing
    double communication = 0;          // seconds inside of the operator: statistics, halos
    double gradients = 0;    // seconds of summing gradients of its parameters that the backward pass leaves visible
    double state_bytes = 0;  // parameters with all that belongs to them
    double kept_bytes = 0;   // activations for the backward pass, of the whole batch
    double made_again_bytes = 0;  // those that are not kept but made once more, of the whole batch
};

// What is moved between two operators, or where the gradient of a parameter is summed.
struct Movement {
    int tensor = 0, from = -1, to = -1;  // operators; -1: none
    Cuts before, after;                  // of the forward pass
    Cuts gradient_before, gradient_after;
    double forward = 0, backward = 0;  // seconds
    double bytes = 0;                  // received by a rank in both passes
};

struct ProgramPlan {
    MeshAxes mesh;
    std::vector<Cuts> cuts;       // letters, of each operator
    std::vector<Cuts> tensors;    // tensor axes, of each tensor as it is given by its operator or kept as a parameter
    std::vector<Cuts> gradients;  // of each parameter: its gradient before it is summed
    std::vector<OperatorCost> costs;  // of each operator
    std::vector<Movement> movements;  // those that take time
    OperatorCost shared;              // of parameters with several uses
    double seconds = 0, bound = 0;    // the search's cost of a step, and what no plan can be cheaper than
    double bytes = 0;                 // of a rank
    bool is_exact() const { return bound >= seconds * (1 - 1e-9); }
};

// Makes variables of operators and of tensors that several operators use, and tables of what lies between them. Equal
// layers get equal cuts, so that one variable stands for the same operator of all of them. The index and the cluster
// must outlive it.
class Strategies {
  public:
    Strategies(const ProgramIndex& index, MeshAxes mesh, const Cluster& cluster, PlanSettings settings);
    Strategies(const Strategies&) = delete;

    // The cheapest plan, with at most so many bytes on each rank. Throws memory_error where there is none.
    ProgramPlan search(double most_bytes = Elimination::kUnlimited, int effort = 200) const;
    // The plan with these cuts of the operators. Throws value_error where one cannot be cut so.
    ProgramPlan given(const std::vector<Cuts>& cuts) const;

    // All ways to cut an operator.
    const std::vector<Cuts>& ways(int op) const { return operators_[static_cast<size_t>(op)].kind->ways; }
    const Elimination& problem() const { return problem_; }
    ProgramPlan plan_of(const Cheapest& found) const;

  private:
    // One side of a tensor, for each value of a variable: its form in the forward pass, and that of its gradient.
    struct Port {
        std::vector<Cuts> forward, gradient;
    };
    // Operators that differ in their tensors only.
    struct OperatorKind {
        std::vector<Cuts> ways;
        std::vector<OperatorCost> costs;
        std::vector<double> seconds, bytes;
        std::vector<Port> operands, results;
    };
    struct OperatorNode {
        const OperatorKind* kind = nullptr;
        int variable = 0;
    };
    // A tensor with several uses: how it lies between them, and whether its gradient is summed before or after they
    // meet.
    struct JunctionKind {
        Port port;
        std::vector<OperatorCost> costs;  // of a parameter
        std::vector<double> seconds, bytes;
    };
    struct Junction {
        const JunctionKind* kind = nullptr;
        int variable = 0;
    };
    struct End {
        int variable = 0;
        const Port* port = nullptr;
    };
    struct Link {
        int tensor = 0, from = -1, to = -1;  // operators, or -1 for the junction
        End giver, taker;
        bool runs_again = false;  // inside of a layer whose forward pass runs twice
    };
    using Reading = ProgramIndex::Reading;

    OperatorKind kind_of(const ProgramOperator& op) const;
    JunctionKind junction_kind(int tensor) const;
    Port operand_port(const ProgramOperator& op, size_t operand, const std::vector<Cuts>& ways) const;
    Port result_port(const ProgramOperator& op, const Use& use, const std::vector<Cuts>& ways) const;
    void add_tensor(int tensor);
    Junction junction_at(int tensor);
    void add_link(int tensor, int from, int to, End giver, End taker);

    bool allows(const ProgramOperator& op, const Cuts& way) const;
    int64_t parts_of(const Cuts& way, int letter) const;
    OperatorCost cost_of(const ProgramOperator& op, const Cuts& way) const;
    double inside_seconds(const ProgramOperator& op, const Cuts& way) const;
    void add_kept_bytes(OperatorCost& cost, const ProgramOperator& op, const Cuts& way) const;
    void add_parameter_cost(OperatorCost& cost, int tensor, const Cuts& cuts, const Cuts& gradient) const;
    double bytes_of(const OperatorCost& cost) const;
    double local_bytes(int tensor, const Cuts& cuts) const;
    const ProgramTensor& tensor_of(const Use& use) const { return program_.tensors[static_cast<size_t>(use.tensor)]; }
    RankGroup group_of(size_t axis) const;
    // Seconds from one form to the other, and bytes that a rank receives.
    std::pair<double, double> conversion(int tensor, const Cuts& from, const Cuts& to) const;
    Movement movement(const Link& link, size_t i, size_t j) const;

    const ProgramIndex& index_;
    const Program& program_;
    MeshAxes mesh_;
    const Cluster& cluster_;
    Cluster fused_;  // the same without what it takes to start
    PlanSettings settings_;
    Elimination problem_;
    std::map<int, OperatorKind> kinds_;
    std::map<std::tuple<std::vector<int64_t>, int, bool, bool>, JunctionKind> junction_kinds_;
    std::vector<OperatorNode> operators_;
    std::map<int, Junction> junctions_;  // of the tensors that have one
    std::vector<Link> links_;
    std::map<std::tuple<const Port*, const Port*, std::vector<int64_t>, int, bool, bool>,
             std::shared_ptr<const PairTable>>
        tables_;
};

}  // namespace lunaria::parallel
