#include "jit/parallel/rank_step.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/ir/builder.h"
#include "core/operator/op.h"
#include "core/parallel/rule.h"
#include "jit/autodiff/pullback.h"
#include "jit/parallel/tape.h"

namespace lunaria::parallel {

class RankStep::Work {
  public:
    Work(const GraphProgram& read, const ClusterPlan& plan, std::function<void(const RankRequest&)> ask,
         std::function<void(const ProgramOperator&)> begins)
        : read_(read),
          program_(read.program),
          plan_(plan),
          ask_(std::move(ask)),
          begins_(std::move(begins)),
          held_(program_.tensors.size()) {
        for (const Movement& m : plan.plan.movements) movements_.emplace(std::tuple(m.tensor, m.from, m.to), &m);
        std::vector<int> uses(program_.tensors.size(), 0);
        producer_.assign(program_.tensors.size(), -1);
        for (size_t i = 0; i < program_.operators.size(); ++i) {
            for (const Use& use : program_.operators[i].operands) ++uses[static_cast<size_t>(use.tensor)];
            for (const Use& use : program_.operators[i].results)
                producer_[static_cast<size_t>(use.tensor)] = static_cast<int>(i);
        }
        for (int n : uses) meets_.push_back(n > 1);
        repeats_.resize(plan.parts.size());
        stands_for_.assign(program_.operators.size(), -1);
        const auto parts = static_cast<int>(plan.parts.size());
        for (int p = 0; p < parts; ++p) {
            same_.push_back(equal_part(p));
            if (same_.back() < 0) find_repeats(p);
        }
    }

    int same_as(int part) const { return same_[static_cast<size_t>(part)]; }

    const std::map<int, int>& repeats(int part) const { return repeats_[static_cast<size_t>(part)]; }

    void forward(int part) {
        for (size_t i = 0; i < program_.operators.size(); ++i)
            if (plan_.part_of[i] == part) pass(static_cast<int>(i));
    }

    void backward(int part) {
        const auto count = static_cast<int>(program_.operators.size());
        if (!begun_) begin_backward();
        for (int i = count; i-- > 0;) {
            if (plan_.part_of[static_cast<size_t>(i)] != part || stands_for_[static_cast<size_t>(i)] >= 0) continue;
            const int layer = program_.operators[static_cast<size_t>(i)].layer;
            const bool is_last = i + 1 == count || program_.operators[static_cast<size_t>(i) + 1].layer != layer;
            if (plan_.settings.remakes && layer >= 0 && is_last) remake(i, layer, part);
            back(i);
        }
    }

    std::vector<RankGradient> gradients(int part) const {
        std::vector<RankGradient> list;
        std::set<int> seen;
        for (size_t i = 0; i < program_.operators.size(); ++i) {
            if (plan_.part_of[i] != part || stands_for_[i] >= 0) continue;
            for (const Use& use : program_.operators[i].operands) {
                const auto at = static_cast<size_t>(use.tensor);
                if (!program_.tensors[at].is_parameter || !seen.insert(use.tensor).second) continue;
                const auto found = cotangents_.find(held_[at].tensor.body());
                list.push_back({use.tensor, program_.operators[i].layer, held_[at].tensor,
                                found == cotangents_.end() ? Tensor() : found->second});
            }
        }
        return list;
    }

    std::vector<Tensor> received(int part) const {
        std::vector<Tensor> list;
        std::set<int> seen;
        for (size_t i = 0; i < program_.operators.size(); ++i) {
            if (plan_.part_of[i] != part) continue;
            for (const Use& use : program_.operators[i].operands) {
                const int maker = producer_[static_cast<size_t>(use.tensor)];
                if (maker < 0 || plan_.part_of[static_cast<size_t>(maker)] == part) continue;
                if (seen.insert(use.tensor).second) list.push_back(held_[static_cast<size_t>(use.tensor)].tensor);
            }
        }
        return list;
    }

    std::vector<Tensor> handed_back(int part) const {
        std::vector<Tensor> list;
        for (const Tensor& t : received(part))
            if (const auto found = cotangents_.find(t.body()); found != cotangents_.end())
                list.push_back(found->second);
        return list;
    }

  private:
    // The rank's piece of a tensor, and what all ranks of a stage have of it in a micro-batch.
    struct Held {
        Tensor tensor;
        Shape whole;
    };

    std::pair<size_t, size_t> range_of(int part) const {
        const auto first = std::ranges::find(plan_.part_of, part);
        const auto end = std::ranges::find_if(first, plan_.part_of.end(), [&](int p) { return p != part; });
        return {first - plan_.part_of.begin(), end - plan_.part_of.begin()};
    }

    // The part before, or the one that it equals, if this one does the same; the first and the last have ends of the
    // network. Then its operators are not computed.
    int equal_part(int part) {
        if (part < 2 || part + 1 >= static_cast<int>(plan_.parts.size())) return -1;
        const auto [begin, end] = range_of(part);
        const int other = same_.back() >= 0 ? same_.back() : part - 1;
        const auto [theirs, theirs_end] = range_of(other);
        if (!is_equal({theirs, theirs_end}, {begin, end})) return -1;
        for (size_t i = begin; i < end; ++i) stands_for_[i] = static_cast<int>(theirs + (i - begin));
        return other;
    }

    // Of a run of equal layers within a part the first two and the last are computed, the second one in place of those
    // between.
    void find_repeats(int part) {
        std::vector<std::pair<size_t, size_t>> layers;  // begin and end of those that are whole in the part
        const auto& ops = program_.operators;
        for (size_t i = 0, end = 0; i < ops.size(); i = end) {
            end = i + 1;
            while (end < ops.size() && ops[end].layer == ops[i].layer) ++end;
            const bool is_here = plan_.part_of[i] == part && plan_.part_of[end - 1] == part;
            if (ops[i].layer >= 0 && is_here) layers.emplace_back(i, end);
        }
        for (size_t k = 1; k < layers.size();) {
            size_t last = k;
            while (last + 1 < layers.size() && is_equal(layers[k], layers[last + 1])) ++last;
            if (last >= k + 2) {
                repeats_[static_cast<size_t>(part)][ops[layers[k].first].layer] = static_cast<int>(last - k);
                for (size_t l = k + 1; l < last; ++l)
                    for (size_t i = layers[l].first; i < layers[l].second; ++i)
                        stands_for_[i] = static_cast<int>(layers[k].first + (i - layers[l].first));
            }
            k = last + 1;
        }
    }

    bool is_equal(std::pair<size_t, size_t> a, std::pair<size_t, size_t> b) const {
        if (a.second - a.first != b.second - b.first) return false;
        for (size_t i = 0; i < a.second - a.first; ++i) {
            const ProgramOperator &x = program_.operators[a.first + i], &y = program_.operators[b.first + i];
            const bool same = x.name == y.name && x.flops == y.flops && x.operands.size() == y.operands.size() &&
                              x.results.size() == y.results.size() &&
                              plan_.plan.cuts[a.first + i] == plan_.plan.cuts[b.first + i];
            if (!same) return false;
            for (size_t k = 0; k < x.results.size(); ++k)
                if (program_tensor(x.results[k].tensor).shape != program_tensor(y.results[k].tensor).shape ||
                    meets_[static_cast<size_t>(x.results[k].tensor)] !=
                        meets_[static_cast<size_t>(y.results[k].tensor)])
                    return false;
        }
        return true;
    }

    // Computes the operator, or takes the results of the one that it is equal to.
    void pass(int at) {
        const int other = stands_for_[static_cast<size_t>(at)];
        if (other < 0) return run_operator(at);
        const auto &own = program_.operators[static_cast<size_t>(at)].results,
                   &theirs = program_.operators[static_cast<size_t>(other)].results;
        for (size_t k = 0; k < own.size(); ++k)
            held_[static_cast<size_t>(own[k].tensor)] = held_[static_cast<size_t>(theirs[k].tensor)];
    }

    const MeshAxes& mesh() const { return plan_.plan.mesh; }
    const ProgramTensor& program_tensor(int t) const { return program_.tensors[static_cast<size_t>(t)]; }

    int64_t parts_of(const Cuts& cuts, int what) const {
        int64_t parts = 1;
        for (size_t a = 0; a < mesh().size(); ++a)
            if (cuts[a] == what) parts *= mesh()[a].size;
        return parts;
    }

    int64_t size_of_letter(const Letter& letter) const {
        return letter.is_batch ? std::max<int64_t>(letter.size / plan_.settings.micro_batches, 1) : letter.size;
    }

    // The shape of a micro-batch's tensor by the letters of an operator that uses it.
    Shape whole_shape(const ProgramOperator& op, const Use& use) const {
        Shape shape;
        const ProgramTensor& t = program_tensor(use.tensor);
        for (size_t d = 0; d < t.shape.size(); ++d) {
            const int letter = use.letters[d];
            const bool is_batch = letter >= 0 && op.letters[static_cast<size_t>(letter)].is_batch;
            shape.push_back(is_batch ? std::max<int64_t>(t.shape[d] / plan_.settings.micro_batches, 1) : t.shape[d]);
        }
        return shape;
    }

    Shape local_shape(const Shape& whole, const Cuts& cuts) const {
        Shape shape = whole;
        for (int d = 0; d < whole.rank(); ++d) shape[d] = piece_of(whole[d], 0, parts_of(cuts, d)).size();
        return shape;
    }

    void ask(const char* kind, size_t axis, double bytes, const Tensor& in, const Tensor& out) {
        if (mesh()[axis].size > 1)
            ask_({kind, axis, bytes, in, out, &program_.operators[static_cast<size_t>(tape_.at)]});
    }

    // The tensor in another form; what it takes to bring it there is asked of other ranks.
    Tensor in_form(int t, const Tensor& x, const Shape& whole, const Cuts& from, const Cuts& to) {
        Tensor now = x;
        const double width = program_tensor(t).bytes_per_element;
        for_each_conversion(from, to, [&](Conversion kind, size_t a, const Cuts&, const Cuts& after) {
            const Shape shape = local_shape(whole, after);
            if (kind == Conversion::slice) {
                now = now.view(shape, now.strides());
                return;
            }
            const Tensor out = blank(now.dtype(), shape);
            ask(name_of(kind), a, width * static_cast<double>(std::max(now.size(), out.size())), now, out);
            now = out;
        });
        return now;
    }

    // Through the movements of the plan between two operators (-1: where the users of a tensor meet).
    Held moved(int t, int from, int to, const Held& x) {
        const auto key = std::tuple(t, from, to);
        const auto found = movements_.find(key);
        if (found == movements_.end()) return same_form(t, from, to, x);
        const Movement& m = *found->second;
        return through(t, x, m.before, m.after, m.gradient_before, m.gradient_after);
    }

    Held through(int t, const Held& x, const Cuts& before, const Cuts& after, const Cuts& gradient_before,
                 const Cuts& gradient_after) {
        Held y{in_form(t, x.tensor, x.whole, before, after), x.whole};
        if (y.tensor.same_body(x.tensor)) y.tensor = x.tensor.apart();
        if (!tape_.is_active(x.tensor)) return y;
        const Tensor in = x.tensor;
        const Shape whole = x.whole;
        tape_.note({nullptr, {Value(in)}, Value(y.tensor), [=, this](const Tensor& d) {
                        return in_form(t, d, whole, gradient_before, gradient_after);
                    }});
        return y;
    }

    // Where nothing is asked of others, a piece may still be the part of a larger one.
    Held same_form(int t, int, int to, const Held& x) {
        if (to < 0) return x;
        const ProgramOperator& op = program_.operators[static_cast<size_t>(to)];
        const Cuts& way = plan_.plan.cuts[static_cast<size_t>(to)];
        for (const Use& use : op.operands) {
            if (use.tensor != t) continue;
            const Shape wanted = local_shape(x.whole, cuts_of(use, way));
            if (wanted == x.tensor.shape()) return x;
            return resized(t, x, wanted);
        }
        return x;
    }

    // A part of a piece, or one with what is not there; the gradient is made that of the piece again.
    Held resized(int t, const Held& x, const Shape& wanted, int edge_axis = -1, double edge_bytes = 0) {
        bool is_inside = true;
        for (int d = 0; d < wanted.rank(); ++d) is_inside = is_inside && wanted[d] <= x.tensor.shape()[d];
        Held y{is_inside ? x.tensor.view(wanted, x.tensor.strides()) : blank(x.tensor.dtype(), wanted), x.whole};
        static_cast<void>(t);
        if (edge_axis >= 0) ask("exchange", static_cast<size_t>(edge_axis), edge_bytes, x.tensor, y.tensor);
        if (!tape_.is_active(x.tensor)) return y;
        const Tensor in = x.tensor;
        tape_.note({nullptr, {Value(in)}, Value(y.tensor), [=, this](const Tensor& d) {
                        const Tensor back = blank(d.dtype(), in.shape());
                        if (edge_axis >= 0) ask("exchange", static_cast<size_t>(edge_axis), edge_bytes, d, back);
                        return edge_axis >= 0 || d.size() < back.size() ? back : d.view(in.shape(), d.strides());
                    }});
        return y;
    }

    static Cuts cuts_of(const Use& use, const Cuts& way) {
        Cuts cuts;
        for (int letter : way) {
            const auto found = letter < 0 ? use.letters.end() : std::ranges::find(use.letters, letter);
            cuts.push_back(found == use.letters.end() ? kWhole : static_cast<int>(found - use.letters.begin()));
        }
        return cuts;
    }

    // What comes from outside lies as its first user, or the place where its users meet, has it.
    Held& held(int t, const ProgramOperator& op, const Use& use, const Cuts& way) {
        Held& h = held_[static_cast<size_t>(t)];
        if (h.tensor) return h;
        const ProgramTensor& p = program_tensor(t);
        h.whole = whole_shape(op, use);
        const bool meets = p.is_parameter && meets_[static_cast<size_t>(t)];
        const Cuts cuts = meets ? plan_.plan.tensors[static_cast<size_t>(t)] : cuts_of(use, way);
        const Shape shape = local_shape(h.whole, meets ? complete(cuts) : cuts);
        h.tensor = blank(dtypes_.contains(t) ? dtypes_.at(t) : DType::f32, shape);
        if (p.is_parameter) {
            h.tensor.set_parameter({p.name, true});
            tape_.activate(h.tensor);
        }
        return h;
    }
    static Cuts complete(Cuts cuts) {
        std::ranges::replace(cuts, kIncomplete, kWhole);
        return cuts;
    }

    // The operand of an operator as its way needs it.
    Held operand(int at, const Use& use) {
        const ProgramOperator& op = program_.operators[static_cast<size_t>(at)];
        const Cuts& way = plan_.plan.cuts[static_cast<size_t>(at)];
        const int t = use.tensor, maker = producer_[static_cast<size_t>(t)];
        Held& h = held(t, op, use, way);
        const bool meets = meets_[static_cast<size_t>(t)];
        // Inputs lie as each operator wants them.
        if (maker < 0 && !program_tensor(t).is_parameter) {
            const Shape wanted = local_shape(h.whole, cuts_of(use, way));
            if (wanted != h.tensor.shape()) return {blank(h.tensor.dtype(), wanted), h.whole};
            return h;
        }
        if (!meets) return maker < 0 ? h : moved(t, maker, at, h);
        return moved(t, -1, at, h);
    }

    void begin(int at) {
        tape_.at = at;
        begins_(program_.operators[static_cast<size_t>(at)]);
    }

    void run_operator(int at) {
        const ProgramOperator& op = program_.operators[static_cast<size_t>(at)];
        const Cuts& way = plan_.plan.cuts[static_cast<size_t>(at)];
        const ir::Node& node = *read_.nodes[static_cast<size_t>(at)];
        begin(at);
        const DType dtype = node.type.kind == ir::NodeType::Kind::tensor ? node.type.tensor.dtype : DType::f32;
        const auto rule = letters_of(Call(*node.op, node.args, dtype));
        std::vector<Interval> cuts;
        bool has_rule = !rule->is_composite, moves = false;
        for (size_t f = 0; f < op.letters.size(); ++f) {
            const int64_t parts = parts_of(way, static_cast<int>(f)), size = size_of_letter(op.letters[f]);
            cuts.push_back(piece_of(size, 0, parts));
            if (cuts.back().size() == op.letters[f].size) continue;
            has_rule = has_rule && rule->factors[f].kind != Kind::spread;
            moves = moves || rule->factors[f].kind == Kind::move;
        }
        std::vector<Value> local;
        for (const Value& v : node.args) local.push_back(plain(v));
        const std::vector<Place> places = places_of(node, *rule);
        for (size_t n = 0; n < places.size() && n < op.operands.size(); ++n) {
            remember_dtype(op.operands[n].tensor, places[n].given(node));
            places[n].put(local, operand(at, op.operands[n]).tensor);
        }
        // As it stands, where that gives the piece of the plan; else by its rule, which knows what attributes mean.
        std::vector<Value> as_it_stands = local;
        cut_sizes(node, as_it_stands);
        if (!has_rule || (!moves && fits(at, node, as_it_stands))) {
            keep_results(at, tape_.emit(*node.op, as_it_stands));
            return;
        }
        const parallel::Work work = rule->work(cuts);
        for (size_t n = 0; n < places.size() && n < op.operands.size(); ++n) {
            const Use& use = op.operands[n];
            const Held x{places[n].given_value(local).tensor(), {}};
            places[n].put(local, as_needed(at, use, x, shape_of(work.operands[places[n].operand])).tensor);
        }
        keep_results(at, rule->run(tape_, local, work));
    }

    // Where an operand stands among the arguments of a call.
    struct Place {
        size_t argument = 0;
        int item = -1;
        size_t operand = 0;  // of the rule
        const Value& given(const ir::Node& node) const { return given_value(node.args); }
        const Value& given_value(const std::vector<Value>& args) const {
            return item >= 0 ? args[argument].items()[static_cast<size_t>(item)] : args[argument];
        }
        void put(std::vector<Value>& args, const Tensor& t) const {
            if (item < 0) {
                args[argument] = Value(t);
                return;
            }
            std::vector<Value> items = args[argument].items();
            items[static_cast<size_t>(item)] = Value(t);
            args[argument] = Value::list(std::move(items));
        }
    };
    // In the order of the operands of the program.
    std::vector<Place> places_of(const ir::Node& node, const Rule& rule) const {
        std::vector<Place> places;
        const auto add = [&](Place place) {
            if (is_program_tensor(place.given(node))) places.push_back(place);
        };
        if (rule.operands.empty())
            for (size_t i = 0; i < node.args.size(); ++i) add({i, -1, i});
        for (size_t i = 0; i < rule.operands.size(); ++i) add({rule.operands[i].argument, rule.operands[i].item, i});
        return places;
    }

    // Whether the operator gives results of the sizes of the plan for these arguments.
    bool fits(int at, const ir::Node& node, const std::vector<Value>& args) const {
        const ProgramOperator& op = program_.operators[static_cast<size_t>(at)];
        std::vector<TensorType> types;
        try {
            collect(ir::infer_call(*node.op, args), types);
        } catch (const Error&) {
            return false;
        }
        if (types.size() < op.results.size()) return false;
        for (size_t k = 0; k < op.results.size(); ++k)
            if (types[k].shape != local_shape(whole_shape(op, op.results[k]),
                                              cuts_of(op.results[k], plan_.plan.cuts[static_cast<size_t>(at)])))
                return false;
        return true;
    }
    static void collect(const ir::NodeType& type, std::vector<TensorType>& types) {
        if (type.kind == ir::NodeType::Kind::tensor) types.push_back(type.tensor);
        for (const ir::NodeType& item : type.items) collect(item, types);
    }

    // Attributes that repeat the last sizes of the first operand, as those of a normalisation do, repeat the piece's.
    static void cut_sizes(const ir::Node& node, std::vector<Value>& local) {
        if (local.empty() || !local[0].is_tensor() || !node.args[0].is_node()) return;
        const Shape whole = type_of(node.args[0]).shape, here = local[0].tensor().shape();
        if (whole.rank() != here.rank()) return;
        for (Value& v : local) {
            if (!v.is_list() || v.items().empty() || std::cmp_greater(v.items().size(), whole.rank())) continue;
            const int from = whole.rank() - static_cast<int>(v.items().size());
            std::vector<Value> sizes;
            for (size_t i = 0; i < v.items().size(); ++i) {
                const Value& item = v.items()[i];
                const int axis = from + static_cast<int>(i);
                if (item.kind() != Value::Kind::integer || item.integer() != whole[axis]) break;
                sizes.emplace_back(here[axis]);
            }
            if (sizes.size() == v.items().size()) v = Value::list(std::move(sizes));
        }
    }

    // An operand with the edges of its neighbours.
    Held as_needed(int at, const Use& use, const Held& x, const Shape& wanted) {
        if (wanted == x.tensor.shape()) return x;
        const ProgramOperator& op = program_.operators[static_cast<size_t>(at)];
        const Cuts& way = plan_.plan.cuts[static_cast<size_t>(at)];
        const double width = program_tensor(use.tensor).bytes_per_element;
        for (size_t a = 0; a < way.size(); ++a) {
            if (way[a] < 0 || op.letters[static_cast<size_t>(way[a])].halo == 0) continue;
            const double more = static_cast<double>(wanted.size() - x.tensor.size());
            return resized(use.tensor, x, wanted, static_cast<int>(a), std::max(0.0, more) * width);
        }
        return resized(use.tensor, x, wanted);
    }

    void keep_results(int at, const Value& result) {
        const ProgramOperator& op = program_.operators[static_cast<size_t>(at)];
        const Cuts& way = plan_.plan.cuts[static_cast<size_t>(at)];
        std::vector<Value> results = result.is_list() ? result.items() : std::vector<Value>{result};
        if (results.size() < op.results.size())
            throw state_error("parallel",
                              str(op.name, " gives ", results.size(), " results, its plan has ", op.results.size()));
        for (size_t k = 0; k < op.results.size(); ++k) {
            const Use& use = op.results[k];
            Held made{results[k].tensor(), whole_shape(op, use)};
            const Shape expected = local_shape(made.whole, cuts_of(use, way));
            if (made.tensor.shape() != expected) {
                if (made.tensor.size() != expected.size())
                    throw state_error("parallel", str("a rank's piece of ", op.name, " has shape ", made.tensor.shape(),
                                                      ", its plan says ", expected));
                made.whole = made.tensor.shape();
            }
            if (k == 0) sum_inside(at, made.tensor, 2);
            Held& h = held_[static_cast<size_t>(use.tensor)];
            h = meets_[static_cast<size_t>(use.tensor)] ? moved(use.tensor, at, -1, made) : made;
        }
    }

    // Numbers of rows that an operator sums over its pieces: two forward (a maximum, a sum), one backward.
    void sum_inside(int at, const Tensor& x, int times) {
        const ProgramOperator& op = program_.operators[static_cast<size_t>(at)];
        const Cuts& way = plan_.plan.cuts[static_cast<size_t>(at)];
        for (size_t a = 0; a < way.size(); ++a) {
            if (way[a] < 0 || !op.letters[static_cast<size_t>(way[a])].spreads) continue;
            const Letter& letter = op.letters[static_cast<size_t>(way[a])];
            const double local = static_cast<double>(piece_of(letter.size, 0, parts_of(way, way[a])).size());
            const double width = program_tensor(op.results[0].tensor).bytes_per_element;
            const double rows = std::max(1.0, static_cast<double>(x.size()) / local);
            for (int i = 0; i < times; ++i) ask("all_reduce", a, rows * width, x, x);
        }
    }

    bool is_program_tensor(const Value& v) const {
        if (!v.is_node()) return v.is_tensor() && v.tensor();
        const auto found = read_.tensors.find(v.node());
        return found != read_.tensors.end() && !found->second.empty();
    }
    void remember_dtype(int t, const Value& v) { dtypes_.try_emplace(t, type_of(v).dtype); }

    // Attributes as they are; operands follow.
    static Value plain(const Value& v) {
        if (v.is_node()) return v.node()->kind == ir::NodeKind::constant ? v.node()->constant : Value();
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(plain(item));
        return Value::list(std::move(items));
    }

    void begin_backward() {
        begun_ = true;
        const ir::Graph& graph = read_.nodes.front()->graph();
        std::function<const ir::Node*(const Value&)> first = [&](const Value& v) -> const ir::Node* {
            if (v.is_node()) return v.node();
            for (size_t i = 0; v.is_list() && i < v.items().size(); ++i)
                if (const ir::Node* node = first(v.items()[i])) return node;
            return nullptr;
        };
        const ir::Node* loss = first(graph.result);
        const auto found = loss ? read_.tensors.find(loss) : read_.tensors.end();
        if (found == read_.tensors.end() || found->second.empty())
            throw state_error("parallel", "the forward pass gives no tensor that can be differentiated");
        const Tensor value = held_[static_cast<size_t>(found->second[0])].tensor;
        add(value, eager_builder().ones_like(Expr(eager_builder(), Value(value))).value().tensor());
    }

    void add(const Tensor& x, const Tensor& d) {
        auto [entry, is_new] = cotangents_.try_emplace(x.body(), d);
        if (is_new) return;
        Builder& b = eager_builder();
        entry->second = (Expr(b, Value(entry->second)) + Expr(b, Value(d))).value().tensor();
    }

    // Makes the activations of a layer again, whose last operator this is.
    void remake(int last, int layer, int part) {
        int first = last;
        const auto is_here = [&](int i) {
            const auto at = static_cast<size_t>(i);
            return program_.operators[at].layer == layer && plan_.part_of[at] == part;
        };
        while (first > 0 && is_here(first - 1)) --first;
        // What leaves the layer has its gradient already.
        std::map<int, Held> outside;
        for (int i = first; i <= last; ++i)
            for (const Use& use : program_.operators[static_cast<size_t>(i)].results)
                outside[use.tensor] = held_[static_cast<size_t>(use.tensor)];
        for (int i = first; i <= last; ++i) {
            tape_.entries.erase(i);
            run_operator(i);
        }
        for (const auto& [t, before] : outside)
            if (const auto found = cotangents_.find(before.tensor.body()); found != cotangents_.end()) {
                const Tensor d = found->second;
                add(held_[static_cast<size_t>(t)].tensor, d);
            }
    }

    void back(int at) {
        begin(at);
        bool is_first = true;
        std::vector<TapeEntry> own = std::move(tape_.entries[at]);
        std::ranges::reverse(own);
        for (const TapeEntry& entry : own) {
            if (!entry.op) {
                const auto found = cotangents_.find(entry.result.tensor().body());
                if (found != cotangents_.end()) add(entry.args[0].tensor(), entry.back(found->second));
                continue;
            }
            back_through(entry, at, is_first);
        }
    }

    void back_through(const TapeEntry& entry, int at, bool& is_first) {
        const std::vector<Value> results =
            entry.result.is_list() ? entry.result.items() : std::vector<Value>{entry.result};
        uint64_t present = 0, active = 0;
        std::vector<Tensor> given;
        for (size_t j = 0; j < results.size(); ++j) {
            const auto found =
                results[j].is_tensor() ? cotangents_.find(results[j].tensor().body()) : cotangents_.end();
            if (found == cotangents_.end()) continue;
            present |= uint64_t{1} << j;
            given.push_back(found->second);
        }
        if (present == 0) return;
        if (is_first) sum_inside(at, given[0], 1);
        is_first = false;
        for (size_t i = 0; i < entry.args.size(); ++i)
            if (tape_.touches(entry.args[i])) active |= uint64_t{1} << i;
        const auto rule = autodiff::pullback(*entry.op, entry.args, entry.result, active, present);
        std::vector<Value> values;
        for (size_t k = 0; k < rule->saved.size(); ++k) {
            const auto source = static_cast<size_t>(rule->saved[k]);
            if (source >= entry.args.size()) {
                values.push_back(results[source - entry.args.size()]);
                continue;
            }
            const Value& v = entry.args[source];
            values.push_back(rule->saved_item[k] >= 0 ? v.items()[static_cast<size_t>(rule->saved_item[k])] : v);
        }
        for (const Tensor& d : given) values.emplace_back(d);
        const Value cotangents = run_rule(*rule->graph, std::move(values));
        for (size_t i = 0; i < cotangents.items().size(); ++i) {
            const Value &d = cotangents.items()[i], &x = entry.args[i];
            if (d.is_tensor() && x.is_tensor() && tape_.is_active(x.tensor())) add(x.tensor(), d.tensor());
            for (size_t k = 0; d.is_list() && k < d.items().size(); ++k)
                if (d.items()[k].is_tensor() && tape_.is_active(x.items()[k].tensor()))
                    add(x.items()[k].tensor(), d.items()[k].tensor());
        }
    }

    const GraphProgram& read_;
    const Program& program_;
    const ClusterPlan& plan_;
    std::function<void(const RankRequest&)> ask_;
    std::function<void(const ProgramOperator&)> begins_;
    std::vector<Held> held_;  // of each tensor
    std::map<std::tuple<int, int, int>, const Movement*> movements_;
    std::vector<int> producer_;
    std::vector<bool> meets_;  // tensors with several users
    std::map<int, DType> dtypes_;
    std::vector<int> same_;                    // of each part: the one that it is equal to, or -1
    std::vector<std::map<int, int>> repeats_;  // of each part: layers that stand for others, and how many they are
    std::vector<int> stands_for_;              // of an operator that is not computed: the one that is
    Tape tape_;
    std::map<const TensorBody*, Tensor> cotangents_;
    bool begun_ = false;
};

RankStep::RankStep(const GraphProgram& read, const ClusterPlan& plan, std::function<void(const RankRequest&)> ask,
                   std::function<void(const ProgramOperator&)> begins)
    : work_(std::make_unique<Work>(read, plan, std::move(ask), std::move(begins))) {}
RankStep::~RankStep() = default;
void RankStep::forward(int part) { work_->forward(part); }
void RankStep::backward(int part) { work_->backward(part); }
std::vector<RankGradient> RankStep::gradients(int part) const { return work_->gradients(part); }
int RankStep::same_as(int part) const { return work_->same_as(part); }
const std::map<int, int>& RankStep::repeats(int part) const { return work_->repeats(part); }
std::vector<Tensor> RankStep::received(int part) const { return work_->received(part); }
std::vector<Tensor> RankStep::handed_back(int part) const { return work_->handed_back(part); }

}  // namespace lunaria::parallel
