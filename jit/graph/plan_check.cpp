#include "jit/graph/plan_check.h"

#include <algorithm>
#include <set>

#include "core/ir/arguments.h"
#include "core/loops/loop_check.h"
#include "core/operator/op.h"
#include "jit/graph/fusion.h"

namespace lunaria::graph {

namespace {

class PlanCheck {
  public:
    PlanCheck(Plan& plan, const Source& source) : plan_(plan), source_(source) {}

    void run() {
        check_inputs();
        for (size_t r = 0; r < plan_.roots.size(); ++r) check_root(plan_.roots[r], r);
        check_arena();
        for (const Handle& handle : plan_.handles) check_handle(handle);
        made_.resize(plan_.roots.size());
        for (size_t r = 0; r < plan_.roots.size(); ++r)
            made_[r] = plan_.roots[r].home == Root::Home::input || plan_.roots[r].home == Root::Home::constant;
        for (step_ = 0; step_ < plan_.steps.size(); ++step_) check_step(plan_.steps[step_]);
        for (const Result& result : plan_.results) check_result(result);
        check_early();
    }

  private:
    void demand(bool holds, std::string_view otherwise) const {
        if (!holds) throw source_.error(str("corrupt: ", otherwise));
    }

    void check_inputs() {
        const size_t count = plan_.inputs.size();
        demand(count == plan_.parameters.size() + plan_.variables.size() && plan_.written.size() == count,
               "the numbers of inputs differ");
        std::set<size_t> seen;
        for (size_t i : plan_.inputs)
            demand(i < plan_.roots.size() && plan_.roots[i].home == Root::Home::input && seen.insert(i).second,
                   "an input has no place");
        for (size_t i = 0; i < plan_.parameters.size(); ++i)
            demand(plan_.parameters[i] == plan_.roots[plan_.inputs[i]].type.tensor, "an input has two types");
        seen.clear();
        for (size_t d : plan_.donated)
            demand(d < plan_.parameters.size() && seen.insert(d).second, "an input is donated that is not there");
    }

    bool is_donated(size_t input) const { return std::ranges::find(plan_.donated, input) != plan_.donated.end(); }

    void check_root(Root& root, size_t r) {
        const bool known = root.type.kind == ir::NodeType::Kind::tensor && root.type.tensor.shape.known();
        if (known) root.bytes = static_cast<size_t>(root.type.tensor.shape.size()) * size_of(root.type.tensor.dtype);
        demand(known || root.home == Root::Home::made, "a value has no size");
        switch (root.home) {
            case Root::Home::input:
                return demand(root.index < plan_.inputs.size() && plan_.inputs[root.index] == r,
                              "an input has no place");
            case Root::Home::constant:
                demand(
                    root.constant.dtype() == root.type.tensor.dtype && root.constant.shape() == root.type.tensor.shape,
                    str("a constant is ", name_of(root.constant.dtype()), root.constant.shape(), " and was ",
                        name_of(root.type.tensor.dtype), root.type.tensor.shape));
                root.constant = root.constant.contiguous();
                return;
            case Root::Home::output:
                return demand(root.index == kFresh ||
                                  (is_donated(root.index) && plan_.parameters[root.index] == root.type.tensor),
                              "a result has no place");
            case Root::Home::arena:
                return demand(root.offset % 64 == 0 && root.offset <= plan_.arena_bytes &&
                                  root.bytes <= plan_.arena_bytes - root.offset,
                              "a temporary lies outside of the arena");
            default:
                return;
        }
    }

    // Temporaries that live at the same time must not overlap; the last step that reads one may write another in its
    // place.
    void check_arena() const {
        std::vector<const Root*> roots;
        size_t most = 0;
        for (const Root& root : plan_.roots) {
            if (root.home != Root::Home::arena) continue;
            roots.push_back(&root);
            most = std::max(most, root.offset + (root.bytes + 63) / 64 * 64);
        }
        demand(plan_.arena_bytes <= most, "the arena is too large");
        std::ranges::sort(roots, {}, &Root::first);
        std::vector<const Root*> alive;
        for (const Root* root : roots) {
            std::erase_if(alive, [&](const Root* other) { return other->last < root->first; });
            for (const Root* other : alive) {
                const bool apart =
                    other->offset + other->bytes <= root->offset || root->offset + root->bytes <= other->offset;
                const bool in_place = other->last == root->first && other->offset == root->offset;
                demand(apart || in_place, "two temporaries lie in one place");
            }
            alive.push_back(root);
        }
    }

    void check_handle(const Handle& handle) const {
        demand(handle.root < plan_.roots.size(), "a view has no root");
        if (handle.whole) return;
        const Root& root = plan_.roots[handle.root];
        demand(root.type.kind == ir::NodeType::Kind::tensor && root.type.tensor.shape.known() && handle.shape.known() &&
                   handle.shape.rank() == handle.strides.rank(),
               "a view has no form");
        __int128 least = handle.offset, most = handle.offset, count = 1;
        for (int i = 0; i < handle.shape.rank(); ++i) {
            count *= std::max<int64_t>(handle.shape[i], 1);
            demand(count <= int64_t{1} << 40, "a view is too large");
            const __int128 far = static_cast<__int128>(handle.strides[i]) * std::max<int64_t>(handle.shape[i] - 1, 0);
            (far < 0 ? least : most) += far;
        }
        demand(handle.shape.size() == 0 || (least >= 0 && most < root.type.tensor.shape.size()),
               "a view ends behind its root");
    }
    TensorType type_of(size_t handle) const {
        const Handle& h = plan_.handles[handle];
        const TensorType& root = plan_.roots[h.root].type.tensor;
        return h.whole ? root : TensorType{root.dtype, h.shape};
    }
    bool is_dense(size_t handle) const {
        const Handle& h = plan_.handles[handle];
        return h.whole || h.strides == contiguous_strides(h.shape);
    }

    void read(size_t root) const {
        demand(root < plan_.roots.size() && made_[root], "a value is used before it is made");
        const Root& r = plan_.roots[root];
        demand(r.home != Root::Home::arena || r.last >= step_, "a temporary is used after its time");
    }
    void write(size_t root) {
        demand(root < plan_.roots.size() && !made_[root], "a value is made twice");
        const Root& r = plan_.roots[root];
        demand(r.home != Root::Home::arena || (r.first == step_ && r.last >= step_),
               "a temporary is made at another time");
        made_[root] = true;
    }

    void check_step(Step& step) {
        for (const Use& use : step.uses) {
            demand(use.handle < plan_.handles.size() && use.arg < step.args.size(), "an operand is not there");
            const Value& arg = step.args[use.arg];
            const bool fits = use.item == SIZE_MAX
                                  ? arg.is_nil()
                                  : arg.is_list() && use.item < arg.items().size() && arg.items()[use.item].is_nil();
            demand(fits, "an operand has no place");
            read(plan_.handles[use.handle].root);
        }
        switch (step.kind) {
            case Step::Kind::loop:
                check_loop(step);
                break;
            case Step::Kind::copy:
                check_copy(step);
                break;
            case Step::Kind::kernel:
                check_kernel(step);
                break;
            case Step::Kind::eager:
                demand(step.op && step.args.size() == step.op->signature.params.size(), "an operator is missing");
                for (size_t r : step.results)
                    demand(r == SIZE_MAX || (r < plan_.roots.size() && plan_.roots[r].home == Root::Home::made &&
                                             plan_.roots[r].type.kind == ir::NodeType::Kind::tensor),
                           "a result has no place");
                break;
        }
        if (step.kind != Step::Kind::loop)
            for (size_t r : step.results)
                if (r != SIZE_MAX) write(r);
    }

    bool is_planned(size_t root) const {
        return root < plan_.roots.size() &&
               (plan_.roots[root].home == Root::Home::arena || plan_.roots[root].home == Root::Home::output);
    }

    void check_copy(const Step& step) const {
        demand(step.uses.size() == 1 && step.uses[0].arg == 0 && step.uses[0].item == SIZE_MAX &&
                   step.results.size() == 1 && is_planned(step.results[0]),
               "a copy is none of one tensor");
        const TensorType from = type_of(step.uses[0].handle), to = plan_.roots[step.results[0]].type.tensor;
        demand(from.shape.known() && from.dtype == to.dtype && from.shape.size() == to.shape.size(),
               "a copy has another type");
    }

    // The operator's own rules decide whether its kernel may be called in this way.
    void check_kernel(const Step& step) const {
        demand(step.op && step.op->infer_fn && step.args.size() == step.op->signature.params.size(),
               "an operator is missing");
        ir::Graph graph("check");
        std::vector<Value> args = step.args;
        std::set<const ir::Node*> dense;
        for (size_t u = 0; u < step.uses.size(); ++u) {
            const Use& use = step.uses[u];
            demand(plan_.roots[plan_.handles[use.handle].root].type.kind == ir::NodeType::Kind::tensor,
                   "an operand is no tensor");
            ir::Node* node = graph.add_parameter("", ir::NodeType::of(type_of(use.handle)));
            if (is_dense(use.handle)) dense.insert(node);
            if (use.item == SIZE_MAX) {
                args[use.arg] = Value(node);
                continue;
            }
            demand(u == 0 || step.uses[u - 1].arg <= use.arg, "the operands are out of order");
            std::vector<Value> items = args[use.arg].items();
            items[use.item] = Value(node);
            args[use.arg] = Value::list(std::move(items));
        }
        std::vector<ir::NodeType> types;
        try {
            ir::complete_arguments(*step.op, args);
            const DType dtype = promoted_dtype(*step.op, args);
            demand(dtype == step.dtype, "an operator computes in another dtype");
            for (TensorType& t : step.op->infer_fn(Call(*step.op, args, dtype)))
                types.push_back(ir::NodeType::of(std::move(t)));
        } catch (const Error& e) {
            demand(false, str("an operator does not take its operands: ", e.what()));
        }
        demand(types.size() == step.results.size(), "an operator has another number of results");
        for (size_t i = 0; i < types.size(); ++i)
            demand(is_planned(step.results[i]) && plan_.roots[step.results[i]].type.tensor == types[i].tensor,
                   "an operator gives another type");
        const ir::NodeType whole = types.size() == 1 ? types[0] : ir::NodeType::list(types);
        demand(runs_by_kernel(*step.op, args, whole, [&](const ir::Node* n) { return dense.contains(n); }),
               str("there is no kernel of '", step.op->name(), "' for its operands"));
    }

    void check_loop(const Step& step) {
        demand(step.source < plan_.sources.size() && step.uses.empty() && step.results.empty(),
               "a loop has no program");
        const LoopProgram& program = plan_.sources[step.source].program;
        const size_t count = program.operands.size();
        demand(step.loop_roots.size() == count && step.loop_offsets.size() == count, "a loop has other operands");
        demand(!program.has_sums || program.in_order == adds_in_order(), "the device adds up in another order");
        std::vector<size_t> bytes;
        for (size_t k = 0; k < count; ++k) {
            const size_t r = step.loop_roots[k];
            demand(r < plan_.roots.size() && plan_.roots[r].type.kind == ir::NodeType::Kind::tensor &&
                       plan_.roots[r].type.tensor.shape.known() && step.loop_offsets[k] >= 0,
                   "an operand of a loop has no memory");
            const DType lies = plan_.roots[r].type.tensor.dtype, seen = dtype_in_memory(program, k);
            demand(lies == seen, str("an operand of a loop is ", name_of(seen), " in memory of ", name_of(lies)));
            bytes.push_back(plan_.roots[r].bytes);
            if (program.operands[k].written)
                demand(is_planned(r), "a loop writes to what is no result");
            else
                read(r);
        }
        const std::string fault = loop_fault(task_of(plan_, step), bytes);
        demand(fault.empty(), fault);
        for (size_t k = 0; k < count; ++k)
            if (program.operands[k].written) write(step.loop_roots[k]);
    }

    void check_result(const Result& result) const {
        demand(result.handle < plan_.handles.size(), "a result is not there");
        const size_t root = plan_.handles[result.handle].root;
        demand(made_[root], "a result is never made");
        demand(result.borrowed || result.early || plan_.roots[root].home != Root::Home::arena,
               "a result does not live to the end");
        if (result.stored != kFresh)
            demand(is_donated(result.stored) && type_of(result.handle) == plan_.parameters[result.stored],
                   "a result is stored into another type");
    }

    void check_early() const {
        demand(plan_.early_after.empty() || plan_.early_after.size() == plan_.steps.size(), "an early use has no step");
        demand(plan_.early.empty() || !plan_.early_after.empty(), "an early use has no step");
        for (const auto& uses : plan_.early_after)
            for (size_t u : uses) demand(u < plan_.early.size(), "there is no such early use");
        for (const EarlyUse& use : plan_.early) {
            for (size_t k : use.outputs) demand(k < plan_.results.size(), "an early use has no output");
            for (size_t i : use.inputs) demand(i < plan_.inputs.size(), "an early use has no input");
        }
    }

    Plan& plan_;
    const Source& source_;
    std::vector<bool> made_;
    size_t step_ = 0;
};

}  // namespace

LoopTask task_of(const Plan& plan, const Step& step) {
    const LoopSource& source = plan.sources[step.source];
    return {&source.program, source.sizes, step.rows, step.inner,
            std::vector<size_t>(step.loop_offsets.begin(), step.loop_offsets.end())};
}

void check_plan(Plan& plan, const Source& source) { PlanCheck(plan, source).run(); }

}  // namespace lunaria::graph
