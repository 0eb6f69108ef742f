#include "jit/graph/plan.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/run/profile.h"
#include "core/tensor/device.h"
#include "jit/graph/operators.h"
#include "jit/graph/rewrite.h"
#include "jit/graph/shared_loops.h"

namespace lunaria::graph {

namespace {

constexpr size_t kAlign = 64;

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

double flops_of_node(const ir::Node& node) {
    std::vector<TensorType> results;
    if (node.type.kind == ir::NodeType::Kind::tensor) results.push_back(node.type.tensor);
    for (const ir::NodeType& item : node.type.items) results.push_back(item.tensor);
    return flops_of(*node.op, node.args, results);
}

bool is_one_tensor(const ir::NodeType& type) { return type.kind == ir::NodeType::Kind::tensor; }

class Planner {
  public:
    Planner(const FlatGraph& flat, const CompileOptions& options)
        : flat_(flat),
          graph_(*flat.graph),
          arrangements_(graph_),
          options_(options),
          backend_(current_device()->graphs()) {
        plan_.variables = flat.variables;
    }

    Plan run() {
        add_parameters();
        std::vector<Piece> pieces = cut_into_pieces({});
        Loops loops = loops_of(pieces);
        if (const Nodes alone = called_for_short_rows(pieces, loops); !alone.empty() && !options_.generates_single) {
            pieces = cut_into_pieces(alone);
            loops = loops_of(pieces);
        }
        add_steps(pieces, loops);
        add_results();
        place_early();
        place_donations();
        place_arena();
        for (size_t r = 0; r < plan_.roots.size(); ++r) {
            plan_.roots[r].first = first_[r];
            plan_.roots[r].last = last_[r];
        }
        return std::move(plan_);
    }

  private:
    using Loops = std::vector<std::optional<Loop>>;  // the loops of the pieces that have one

    std::vector<Piece> cut_into_pieces(const Nodes& alone) const {
        auto pieces =
            cut(graph_, arrangements_, flat_.again, alone, options_.generate && backend_ && backend_->can_compile());
        if (!options_.generates_single) return pieces;
        for (Piece& piece : pieces)
            piece.generated |= piece.nodes.size() == 1 && part_of(*piece.nodes[0], arrangements_) != Part::none;
        return pieces;
    }

    Loops loops_of(const std::vector<Piece>& pieces) {
        find_readers(pieces);
        Loops loops(pieces.size());
        for (size_t p = 0; p < pieces.size(); ++p)
            if (pieces[p].generated)
                loops[p] = build_loop(pieces[p], arrangements_, [&](const ir::Node* n) { return read_.contains(n); });
        return loops;
    }

    // The nodes for which generated code would call the operator's own loop for each short row: a separate kernel,
    // which goes through all rows at once, costs less.
    Nodes called_for_short_rows(const std::vector<Piece>& pieces, const Loops& loops) const {
        constexpr int64_t kShort = 256;
        Nodes nodes;
        for (size_t p = 0; p < pieces.size(); ++p) {
            if (!loops[p] || (loops[p]->program.depth.empty() && (loops[p]->inner >= kShort || loops[p]->rows == 1)))
                continue;
            for (const ir::Node* node : pieces[p].nodes)
                if (node->op->is_elementwise && is_done_by_loop(node->op->name(), element_dtype(*node)))
                    nodes.insert(node);
        }
        return nodes;
    }

    void add_parameters() {
        const size_t given = graph_.parameters().size() - plan_.variables.size();
        for (size_t i = 0; i < graph_.parameters().size(); ++i) {
            const ir::Node* p = graph_.parameters()[i];
            if (i < given) plan_.parameters.push_back(p->type.tensor);
            Root root{.type = p->type, .home = Root::Home::input, .index = i};
            plan_.inputs.push_back(add_root(p, std::move(root)));
        }
        plan_.written.assign(plan_.inputs.size(), false);
        for (const ir::Node* node : graph_.body()) {
            if (!node->op || !node->op->writes()) continue;
            for (const Value& arg : node->args)
                ir::for_each_node(arg, [&](const ir::Node* n) {
                    if (n->kind == ir::NodeKind::parameter) plan_.written[plan_.roots[root_of_.at(n)].index] = true;
                });
        }
    }

    size_t add_root(const ir::Node* node, Root root) {
        if (is_one_tensor(root.type) && root.type.tensor.shape.known())
            root.bytes = static_cast<size_t>(root.type.tensor.shape.size()) * size_of(root.type.tensor.dtype);
        plan_.roots.push_back(std::move(root));
        first_.push_back(SIZE_MAX);
        last_.push_back(0);
        root_of_[node] = plan_.roots.size() - 1;
        return plan_.roots.size() - 1;
    }

    size_t root_of(const ir::Node* node) {
        if (auto found = root_of_.find(node); found != root_of_.end()) return found->second;
        // All other values were added with their steps.
        Root root{.type = node->type, .home = Root::Home::constant};
        const Tensor dense = node->constant.tensor().contiguous();
        // A body of our own, so that a write to the original copies the storage.
        root.constant = dense.apart();
        return add_root(node, std::move(root));
    }

    size_t handle_of(const ir::Node* node) {
        const Arrangement* a = arrangements_.find(node);
        Handle handle;
        handle.root = root_of(a ? a->root : node);
        if (a) {
            const TensorType& whole = a->root->type.tensor;
            handle.whole = a->root == node || (a->type.shape == whole.shape && a->covers_root());
            handle.shape = a->type.shape;
            handle.strides = a->strides;
            handle.offset = a->offset;
        }
        std::vector<size_t>& known = handles_of_[handle.root];
        for (size_t i : known) {
            const Handle& h = plan_.handles[i];
            if (h.root == handle.root && h.whole == handle.whole &&
                (h.whole || (h.shape == handle.shape && h.strides == handle.strides && h.offset == handle.offset)))
                return i;
        }
        plan_.handles.push_back(handle);
        known.push_back(plan_.handles.size() - 1);
        return known.back();
    }

    // Finds the readers of each root outside of its piece.
    void find_readers(const std::vector<Piece>& pieces) {
        read_.clear();
        items_.clear();
        std::unordered_map<const ir::Node*, size_t> piece_of;
        for (size_t p = 0; p < pieces.size(); ++p)
            for (const ir::Node* node : pieces[p].nodes) piece_of[node] = p;
        auto root = [&](const ir::Node* n) {
            const Arrangement* a = arrangements_.find(n);
            return a ? a->root : n;
        };
        for (size_t p = 0; p < pieces.size(); ++p)
            for (const ir::Node* node : pieces[p].nodes)
                for (const Value& arg : node->args)
                    ir::for_each_node(arg, [&](const ir::Node* n) {
                        auto from = piece_of.find(root(n));
                        if (from == piece_of.end() || from->second != p) read_.insert(root(n));
                    });
        ir::for_each_node(graph_.result, [&](const ir::Node* n) { read_.insert(root(n)); });
        for (const ir::Node* node : graph_.body())
            if (node->kind == ir::NodeKind::item && !arrangements_.is_view(node))
                items_[node->args[0].node()].push_back(node);
    }

    void add_steps(const std::vector<Piece>& pieces, Loops& built) {
        std::vector<Loop> loops;
        std::vector<size_t> loop_of(pieces.size(), SIZE_MAX);
        for (size_t p = 0; p < pieces.size(); ++p) {
            if (!built[p]) continue;
            loop_of[p] = loops.size();
            loops.push_back(std::move(*built[p]));
        }
        share_programs(loops, *flat_.graph);
        std::vector<LoopTask> tasks;
        for (const Loop& loop : loops) tasks.push_back(task_of(loop));
        std::vector<LoopRef> codes;
        if (!tasks.empty()) codes = backend_->compile(tasks);
        for (size_t p = 0; p < pieces.size(); ++p) {
            const bool is_loop = loop_of[p] != SIZE_MAX;
            if (is_loop && codes[loop_of[p]]) {
                add_loop(pieces[p], loops[loop_of[p]], codes[loop_of[p]]);
                continue;
            }
            for (const ir::Node* node : pieces[p].nodes) {
                add_operator(*node);
                plan_.steps.back().awaits = is_loop;
            }
        }
    }

    static int64_t offset_of(const LoopBinding& b) {
        if (b.copied.rank() > 0) return 0;
        return b.offset * static_cast<int64_t>(size_of(b.root->type.tensor.dtype));
    }
    static LoopTask task_of(const Loop& loop) {
        LoopTask task{&loop.program, loop.sizes, loop.rows, loop.inner, {}};
        for (const LoopBinding& b : loop.operands) task.offsets.push_back(static_cast<size_t>(offset_of(b)));
        return task;
    }

    // Adds a step that makes a dense copy of an operand; returns its root.
    size_t add_copy(const LoopBinding& b) {
        Handle handle;
        handle.root = root_of(b.root);
        handle.whole = false;
        handle.shape = b.copied;
        handle.strides = b.copied_strides;
        handle.offset = b.offset;
        plan_.handles.push_back(handle);
        Step step;
        step.kind = Step::Kind::copy;
        step.label = ops().transpose.name();
        step.args.emplace_back();
        step.uses.push_back({0, SIZE_MAX, plan_.handles.size() - 1});
        touch(handle.root);
        const TensorType type{b.root->type.tensor.dtype, b.copied};
        step.results.push_back(add_root(nullptr, {.type = ir::NodeType::of(type)}));
        touch_written(step.results[0]);
        plan_.steps.push_back(std::move(step));
        return plan_.roots.size() - 1;
    }

    void add_loop(const Piece& piece, const Loop& loop, LoopRef code) {
        Step step;
        step.kind = Step::Kind::loop;
        step.loop = std::move(code);
        if (options_.keeps_sources) {
            step.source = plan_.sources.size();
            plan_.sources.push_back({loop.program, loop.sizes});
        }
        step.rows = loop.rows;
        step.inner = loop.inner;
        step.nodes = piece.nodes.size();
        step.span = piece.nodes[0]->span;
        for (const ir::Node* node : piece.nodes) step.flops += flops_of_node(*node);
        for (const ir::Node* node : piece.nodes) step.label += str(step.label.empty() ? "" : " ", node->op->name());
        for (const LoopBinding& b : loop.operands) {
            const bool copied = b.copied.rank() > 0;
            size_t root = b.written ? add_root(b.root, {.type = b.root->type}) : copied ? add_copy(b) : root_of(b.root);
            step.loop_roots.push_back(root);
            step.loop_offsets.push_back(offset_of(b));
        }
        for (size_t k = 0; k < loop.operands.size(); ++k)
            loop.operands[k].written ? touch_written(step.loop_roots[k]) : touch(step.loop_roots[k]);
        loops_[plan_.steps.size()] = loop;
        plan_.steps.push_back(std::move(step));
    }

    // A broadcast constant that is small enough to be written out for kernels with dense operands.
    static bool is_spread_constant(const Arrangement& a) {
        constexpr int64_t kMost = 64 * 1024;
        return a.root->kind == ir::NodeKind::constant && a.root->type.tensor.shape.size() == 1 &&
               a.type.shape.size() <= kMost;
    }
    size_t written_out(const ir::Node* node, const Arrangement& a) {
        auto found = written_out_.find(node);
        if (found != written_out_.end()) return found->second;
        Root root{.type = ir::NodeType::of(a.type), .home = Root::Home::constant};
        root.constant = a.root->constant.tensor().view(a.type.shape, a.strides, a.offset).contiguous();
        Handle handle;
        handle.root = add_root(nullptr, std::move(root));
        plan_.handles.push_back(handle);
        written_out_[node] = plan_.handles.size() - 1;
        return plan_.handles.size() - 1;
    }

    Value without_tensors(const Value& v, size_t arg, size_t item, std::vector<Use>& uses, bool dense) {
        if (v.is_node()) {
            const ir::Node* node = v.node();
            if (node->kind == ir::NodeKind::constant && !node->constant.is_tensor()) return node->constant;
            const Arrangement* a = arrangements_.find(node);
            const bool spread = dense && a && !a->is_dense() && is_spread_constant(*a);
            uses.push_back({arg, item, spread ? written_out(node, *a) : handle_of(node)});
            touch(plan_.handles[uses.back().handle].root);
            return {};
        }
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (size_t i = 0; i < v.items().size(); ++i)
            items.push_back(without_tensors(v.items()[i], arg, i, uses, dense));
        return Value::list(std::move(items));
    }

    bool is_direct(const ir::Node& node) const {
        return runs_by_kernel(*node.op, node.args, node.type, [&](const ir::Node* n) {
            const Arrangement* a = arrangements_.find(n);
            return a && (a->is_dense() || is_spread_constant(*a));
        });
    }

    // A reshape that copies, since the strides of its operand allow no view.
    bool is_copy(const ir::Node& node) const {
        if (!is_call(&node, ops().reshape) || !has_static_shape(node.type) || !node.args[0].is_node()) return false;
        const Arrangement* a = arrangements_.find(node.args[0].node());
        return a && !a->is_dense();
    }

    void add_operator(const ir::Node& node) {
        if (!node.op) throw state_error("compile", "only operators on tensors can be compiled, not calls of functions");
        Step step;
        step.kind = is_copy(node) ? Step::Kind::copy : is_direct(node) ? Step::Kind::kernel : Step::Kind::eager;
        step.op = node.op;
        step.dtype = promoted_dtype(*node.op, node.args);
        step.flops = flops_of_node(node);
        step.label = node.op->name();
        step.span = node.span;
        for (size_t i = 0; i < node.args.size(); ++i)
            step.args.push_back(without_tensors(node.args[i], i, SIZE_MAX, step.uses,
                                                step.kind == Step::Kind::kernel && !node.op->takes_strides));
        // An assignment shares the storage of the value, and views that of their operand: they must not use memory of
        // the arena, which the next step may reuse.
        if (step.kind == Step::Kind::eager)
            for (const Use& use : step.uses) {
                Root& root = plan_.roots[plan_.handles[use.handle].root];
                if (root.home != Root::Home::arena) continue;
                root.home = Root::Home::output;
                root.index = kFresh;
            }
        auto home = step.kind == Step::Kind::eager ? Root::Home::made : Root::Home::arena;
        if (node.type.kind != ir::NodeType::Kind::list) {
            step.results.push_back(add_root(&node, {.type = node.type, .home = home}));
        } else {
            step.results.assign(node.type.items.size(), SIZE_MAX);
            for (const ir::Node* item : items_[&node]) {
                size_t& result = step.results.at(item->index);
                if (result == SIZE_MAX)
                    result = add_root(item, {.type = item->type, .home = home});
                else
                    root_of_[item] = result;
            }
            // A kernel writes all of its results, also those that are never read.
            if (step.kind == Step::Kind::kernel)
                for (size_t i = 0; i < step.results.size(); ++i)
                    if (step.results[i] == SIZE_MAX)
                        step.results[i] = add_root(nullptr, {.type = node.type.items[i], .home = home});
        }
        for (size_t r : step.results)
            if (r != SIZE_MAX) touch_written(r);
        plan_.steps.push_back(std::move(step));
    }

    void touch(size_t root) {
        last_[root] = plan_.steps.size();
        readers_[root].push_back(plan_.steps.size());
    }
    void touch_written(size_t root) {
        first_[root] = plan_.steps.size();
        last_[root] = std::max(last_[root], plan_.steps.size());
    }

    void add_results() {
        std::vector<Value> items{graph_.result};
        if (graph_.result.is_list()) items = graph_.result.items();
        for (const Value& item : items) {
            Value v = item;
            if (!v.is_node())
                throw state_error("compile", str("the result ", to_string(v), " is no tensor of the graph"));
            Result result;
            result.handle = handle_of(v.node());
            Root& root = plan_.roots[plan_.handles[result.handle].root];
            const std::vector<size_t>& borrowed = options_.borrowed;
            result.borrowed = std::find(borrowed.begin(), borrowed.end(), plan_.results.size()) != borrowed.end();
            for (const EarlyUse& use : options_.early)
                for (size_t k : use.outputs) result.early |= k == plan_.results.size();
            if (result.early) {
                // See place_early().
            } else if (result.borrowed) {
                touch(plan_.handles[result.handle].root);
            } else if (root.home == Root::Home::arena) {
                root.home = Root::Home::output;
                root.index = kFresh;
            }
            plan_.results.push_back(result);
        }
    }

    void place_early() {
        if (options_.early.empty() || plan_.steps.empty()) return;
        plan_.early = options_.early;
        plan_.early_after.resize(plan_.steps.size());
        size_t safe = 0;
        for (size_t s = 0; s < plan_.steps.size(); ++s)
            if (may_fail(plan_.steps[s])) safe = s;
        for (size_t u = 0; u < plan_.early.size(); ++u) {
            size_t when = safe;
            for (size_t k : plan_.early[u].outputs) {
                const size_t root = plan_.handles[plan_.results[k].handle].root;
                if (first_[root] != SIZE_MAX) when = std::max(when, first_[root]);
            }
            for (size_t i : plan_.early[u].inputs) when = std::max(when, last_[plan_.inputs[i]]);
            plan_.early_after[when].push_back(u);
            // The memory of the outputs is not reused before the next step.
            for (size_t k : plan_.early[u].outputs) {
                const size_t root = plan_.handles[plan_.results[k].handle].root;
                last_[root] = std::max(last_[root], when + 1);
                readers_[root].push_back(when + 1);
            }
        }
    }

    // Whether a step may refuse the values of its operands: an index out of range, a singular matrix.
    static bool may_fail(const Step& step) {
        if (step.kind == Step::Kind::loop || step.kind == Step::Kind::copy) return false;
        return step.kind == Step::Kind::eager || step.op->may_raise(step.dtype);
    }

    void place_donations() {
        const size_t given = plan_.parameters.size();
        for (const Donation& d : options_.donations) {
            if (d.input >= given || d.output >= plan_.results.size())
                throw argument_error("compile",
                                     str("there is no input ", d.input, " or no output ", d.output,
                                         " for a donation: the graph has ", given, " and ", plan_.results.size()));
            Result& result = plan_.results[d.output];
            const size_t input = plan_.inputs[d.input];
            Handle& handle = plan_.handles[result.handle];
            Root& root = plan_.roots[handle.root];
            const TensorType& type = plan_.parameters[d.input];
            TensorType made{root.type.tensor.dtype, handle.whole ? root.type.tensor.shape : handle.shape};
            if (!(made == type))
                throw argument_error("compile",
                                     str("output ", d.output, " can't take the place of input ", d.input, ": they are ",
                                         name_of(made.dtype), made.shape, " and ", name_of(type.dtype), type.shape));
            if (std::find(plan_.donated.begin(), plan_.donated.end(), d.input) != plan_.donated.end())
                throw argument_error("compile", str("input ", d.input, " is donated twice"));
            plan_.donated.push_back(d.input);
            if (handle.whole && root.home == Root::Home::output && root.index == kFresh &&
                may_share(input, handle.root) && !is_result(input))
                root.index = d.input;
            else
                result.stored = d.input;
        }
        for (Result& r : plan_.results) {
            const Root& root = plan_.roots[plan_.handles[r.handle].root];
            bool overwritten = root.home == Root::Home::input &&
                               std::find(plan_.donated.begin(), plan_.donated.end(), root.index) != plan_.donated.end();
            // Also a value in a donated input that is another output.
            r.copied = r.stored == kFresh && overwritten;
        }
    }

    bool is_result(size_t root) const {
        return std::any_of(plan_.results.begin(), plan_.results.end(),
                           [&](const Result& r) { return plan_.handles[r.handle].root == root; });
    }

    // Whether `to` may be computed into the memory of `from`: no later step reads `from`, and the step itself reads
    // each element before it writes it.
    bool may_share(size_t from, size_t to) const {
        const size_t writer = first_[to];
        if (writer == SIZE_MAX) return false;
        auto readers = readers_.find(from);
        if (readers == readers_.end()) return true;
        bool reads_itself = false;
        for (size_t s : readers->second) {
            if (s > writer) return false;
            reads_itself |= s == writer;
        }
        if (!reads_itself) return true;
        auto found = loops_.find(writer);
        return found != loops_.end() && reads_before_writing(found->second, plan_.steps[writer], from, to);
    }

    bool reads_before_writing(const Loop& loop, const Step& step, size_t from, size_t to) const {
        const LoopProgram& program = loop.program;
        if (!program.depth.empty()) return false;
        const std::vector<int> pass = passes_of(program);
        const int last = *std::max_element(pass.begin(), pass.end());
        size_t target = 0;
        for (size_t k = 0; k < step.loop_roots.size(); ++k)
            if (step.loop_roots[k] == to) target = k;
        const size_t outer = static_cast<size_t>(program.outer_rank);
        size_t at = outer + 1;
        std::vector<size_t> start;
        for (const LoopOperand& o : program.operands) {
            start.push_back(at);
            at += outer + (o.step == LoopOperand::Step::wide);
        }
        for (const LoopInstruction& i : program.code) {
            if (i.kind == LoopInstruction::Kind::add && i.index == target) return false;
            if (i.kind == LoopInstruction::Kind::store && i.index == target)
                if (i.row || pass[static_cast<size_t>(&i - program.code.data())] != last) return false;
        }
        for (size_t k = 0; k < step.loop_roots.size(); ++k) {
            if (step.loop_roots[k] != from) continue;
            if (program.operands[k].step != LoopOperand::Step::dense || step.loop_offsets[k] != 0) return false;
            if (program.operands[target].step != LoopOperand::Step::dense) return false;
            for (size_t i = 0; i < outer; ++i)
                if (loop.sizes[start[k] + i] != loop.sizes[start[target] + i]) return false;
        }
        return plan_.roots[from].bytes == plan_.roots[to].bytes;
    }

    // Places temporaries in the order of their creation, each in the first gap free of living ones.
    void place_arena() {
        struct Block {
            size_t offset, bytes, last, root;
        };
        std::vector<Block> alive;
        std::vector<std::vector<size_t>> made(plan_.steps.size());
        for (size_t r = 0; r < plan_.roots.size(); ++r)
            if (plan_.roots[r].home == Root::Home::arena) made[first_[r]].push_back(r);
        for (size_t s = 0; s < plan_.steps.size(); ++s) {
            std::erase_if(alive, [&](const Block& b) { return b.last < s; });
            for (size_t r : made[s]) {
                Root& root = plan_.roots[r];
                const size_t bytes = aligned(root.bytes);
                auto shared = std::find_if(alive.begin(), alive.end(), [&](const Block& b) {
                    return b.last == s && b.bytes == bytes && first_[b.root] < s && may_share(b.root, r);
                });
                if (shared != alive.end()) {
                    root.offset = shared->offset;
                    *shared = {root.offset, bytes, last_[r], r};
                    continue;
                }
                std::sort(alive.begin(), alive.end(),
                          [](const Block& a, const Block& b) { return a.offset < b.offset; });
                size_t at = 0;
                for (const Block& b : alive) {
                    if (b.offset >= at + bytes) break;
                    at = std::max(at, b.offset + b.bytes);
                }
                root.offset = at;
                plan_.arena_bytes = std::max(plan_.arena_bytes, at + bytes);
                alive.push_back({at, bytes, last_[r], r});
            }
        }
    }

    const FlatGraph& flat_;
    const ir::Graph& graph_;
    const Arrangements arrangements_;
    const CompileOptions& options_;
    Backend* const backend_;  // null: no loops
    Plan plan_;
    std::unordered_map<const ir::Node*, size_t> root_of_;
    std::unordered_map<size_t, std::vector<size_t>> handles_of_;  // by root
    std::unordered_map<const ir::Node*, std::vector<const ir::Node*>> items_;
    std::set<const ir::Node*> read_;
    std::vector<size_t> first_, last_;  // steps, by root
    std::unordered_map<size_t, std::vector<size_t>> readers_;
    std::unordered_map<size_t, Loop> loops_;  // by step
    std::unordered_map<const ir::Node*, size_t> written_out_;
};

// Whether an operand needs neither conversion nor copy.
bool is_taken_as_it_is(const Op& op, const Value& v, ArgType kind, DType dtype,
                       const std::function<bool(const ir::Node*)>& is_dense) {
    if (v.is_nil() || (v.is_number() && op.is_elementwise)) return true;
    const auto t = static_type(v);
    if (!t || !v.is_node() || !t->shape.known()) return false;
    if (is_half(t->dtype) && !takes_halves(op)) return false;
    if ((kind == ArgType::same || kind == ArgType::real) && t->dtype != dtype) return false;
    if (kind == ArgType::index && t->dtype != DType::i64) return false;
    return op.takes_strides || is_dense(v.node());
}

}  // namespace

bool runs_by_kernel(const Op& op, std::span<const Value> args, const ir::NodeType& type,
                    const std::function<bool(const ir::Node*)>& is_dense) {
    if (op.view_fn || op.host_fn || op.writes() || !has_static_shape(type)) return false;
    if (op.expand_fn && !op.infer_fn) return false;
    size_t count = 0;
    op.kernels(*current_device(), count);
    if (count == 0) return false;
    const DType dtype = promoted_dtype(op, args);
    auto fits = [&](const Value& v, ArgType kind) { return is_taken_as_it_is(op, v, kind, dtype, is_dense); };
    for (size_t i = 0; i < args.size(); ++i) {
        const ArgType kind = op.signature.params[i].type;
        if (!is_tensor_type(kind)) {
            bool tensors = false;
            ir::for_each_node(args[i], [&](const ir::Node*) { tensors = true; });
            if (tensors) return false;
        } else if (kind == ArgType::tensors) {
            if (!args[i].is_list()) return false;
            for (const Value& item : args[i].items())
                if (!fits(item, kind) || !(static_type(item)->dtype == static_type(args[i].items()[0])->dtype))
                    return false;
        } else if (!fits(args[i], kind)) {
            return false;
        }
    }
    auto is_narrow = [&](const ir::NodeType& t) { return is_half(t.tensor.dtype) && !takes_halves(op); };
    if (is_one_tensor(type)) return !is_narrow(type) && type.tensor.shape.size() > 0;
    return std::none_of(type.items.begin(), type.items.end(), is_narrow);
}

Plan make_plan(const FlatGraph& flat, const CompileOptions& options) { return Planner(flat, options).run(); }

}  // namespace lunaria::graph
