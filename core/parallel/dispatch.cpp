#include "core/parallel/dispatch.h"

#include <algorithm>
#include <array>
#include <functional>

#include "core/base/error.h"
#include "core/operator/infer.h"
#include "core/operator/op.h"
#include "core/parallel/division.h"
#include "core/parallel/laid.h"
#include "core/parallel/rule.h"
#include "core/parallel/traffic.h"
#include "core/random/random.h"

namespace lunaria::parallel {

namespace {

using Args = std::vector<Value>;

// Operators that move or order whole tensors: their own function knows what to do with those of any device.
bool is_about_places(const Op& op) {
    constexpr std::array<std::string_view, 4> kNames = {"to_device", "to_device_of", "lay_out", "lay_out_as"};
    return std::ranges::count(kNames, op.name()) > 0;
}

template <class F>
void for_each_tensor(std::span<const Value> args, F&& f) {
    for (const Value& v : args) {
        if (v.is_tensor()) f(v.tensor());
        if (!v.is_list()) continue;
        for (const Value& item : v.items())
            if (item.is_tensor()) f(item.tensor());
    }
}

// The arguments with other values in place of tensors.
template <class F>
Args with_tensors(std::span<const Value> args, F&& f) {
    Args result;
    for (const Value& v : args) {
        if (!v.is_list()) {
            result.push_back(v.is_tensor() ? Value(f(v.tensor())) : v);
            continue;
        }
        Args items;
        for (const Value& item : v.items()) items.push_back(item.is_tensor() ? Value(f(item.tensor())) : item);
        result.push_back(Value::list(std::move(items)));
    }
    return result;
}

// The mesh of the call: that of its largest operand. Null: all operands are whole tensors of no mesh.
const Mesh* mesh_of(std::span<const Value> args) {
    const Mesh* mesh = nullptr;
    int64_t most = -1;
    for_each_tensor(args, [&](const Tensor& t) {
        if (!is_laid_out(t)) return;
        const Distribution* layout = layout_of(t);
        if (!layout || t.size() <= most) return;
        mesh = &layout->mesh();
        most = t.size();
    });
    return mesh;
}

Laid same_everywhere(const Mesh* mesh, const Tensor& t) {
    if (!mesh) return {nullptr, t.dtype(), t.shape(), {t}};
    return {Distribution::replicated(*mesh, t.rank()), t.dtype(), t.shape(),
            std::vector<Tensor>(held_positions(*mesh).size(), t)};
}

template <class F>
Value for_each_result(const Value& v, F&& f) {
    if (v.is_tensor()) return Value(f(v.tensor()));
    if (!v.is_list()) return v;
    Args items;
    for (const Value& item : v.items()) items.push_back(for_each_result(item, f));
    return Value::list(std::move(items));
}

// What a call has written into an operand becomes its content, in the layout that it had.
void take_back(const Tensor& operand, Laid written) {
    if (!is_laid_out(operand)) {
        Tensor(operand).own_storage();
        copy_elements(whole(written), operand);
        return;
    }
    const Distribution* before = layout_of(operand);
    Tensor(operand).own_storage();
    if (before) written = in_layout(written, *before->complete(), {});
    replace_content(operand, std::move(written));
}

// Every rank computes the whole call.
Value run_everywhere(const Op& op, std::span<const Value> given, const Mesh* mesh, std::string_view why) {
    std::vector<std::pair<Tensor, Tensor>> operands;
    const Args args = with_tensors(given, [&](const Tensor& t) {
        const Tensor all = whole(content(t), {.op = &op, .why = why});
        operands.emplace_back(t, op.writes() ? all.apart() : all);
        return operands.back().second;
    });
    const PlaceScope host(nullptr);
    const Value result = lunaria::run(op, args);
    const PlaceScope back(&mesh_device());
    for (const auto& [operand, here] : operands)
        if (op.writes() && here.version() > 0) take_back(operand, same_everywhere(mesh, here));
    if (op.returns_operand) return given[0];
    return for_each_result(result, [&](const Tensor& t) { return tensor_of(same_everywhere(mesh, t)); });
}

// A call that is divided.
class DividedCall {
  public:
    DividedCall(const Op& op, std::span<const Value> given, const Mesh& mesh, const Rule& rule)
        : op_(op), given_(given), mesh_(mesh), rule_(rule) {
        for (const Operand& o : rule.operands) {
            laid_.push_back(content(tensor(o)));
            Laid& x = laid_.back();
            // One of another mesh comes whole.
            if (x.layout && &x.layout->mesh() != &mesh)
                x = in_layout(x, *Distribution::replicated(mesh, x.shape.rank()), {&op_, "", &rule_, laid_.size() - 1});
            if (op_.reads_type_only && x.layout) x.layout = x.layout->complete();
        }
    }

    // False: nothing can be divided.
    bool run(Value& result) {
        const Division division(rule_, mesh_, laid_, kept());
        if (division.is_spread()) {
            result = rule_.expanded(eager_builder(), given_);
            if (!result.is_nil()) return true;
        }
        run_pieces(division);
        result = op_.returns_operand ? given_[0] : results(division);
        return true;
    }

  private:
    const Value& argument(const Operand& o) const {
        const Value& v = given_[o.argument];
        return o.item >= 0 ? v.items()[static_cast<size_t>(o.item)] : v;
    }
    const Tensor& tensor(const Operand& o) const { return argument(o).tensor(); }

    int kept() const {
        if (!op_.writes()) return -1;
        for (size_t i = 0; i < rule_.operands.size(); ++i)
            if (rule_.operands[i].argument == 0 && is_laid_out(tensor(rule_.operands[i])) && laid_[i].layout)
                return static_cast<int>(i);
        return -1;
    }

    // The parts of an operand that the positions held here need.
    std::vector<Tensor> parts(size_t i, const Division& division, const Distribution& layout) {
        const Cause cause{&op_, "", &rule_, i};
        Laid moved = in_layout(laid_[i], layout, cause);
        keep_sums(i, moved, layout);
        if (!division.is_shifted()) return own_parts(i, layout, std::move(moved.pieces));
        std::vector<Region> needed;
        bool others = false;
        for (int64_t p = 0; p < mesh_.count(); ++p) {
            needed.push_back(rule_.work(division.cuts(p)).operands[i]);
            others |= needed.back() != layout.piece(laid_[i].shape, p);
        }
        return others ? parts_of(moved, needed, cause) : std::move(moved.pieces);
    }

    // The parts of pieces that the call reads: a slice of an axis that is not cut.
    std::vector<Tensor> own_parts(size_t i, const Distribution& layout, std::vector<Tensor> pieces) const {
        const std::vector<int64_t> held = held_positions(mesh_);
        for (size_t p = 0; p < pieces.size(); ++p) {
            const Region piece = layout.piece(laid_[i].shape, held[p]);
            const Region& part = works_[p].operands[i];
            if (part == piece) continue;
            Shape shape;
            int64_t offset = 0;
            for (size_t a = 0; a < part.size(); ++a) {
                shape.push_back(part[a].size());
                if (!part[a].empty())
                    offset += (part[a].begin - piece[a].begin) * pieces[p].strides()[static_cast<int>(a)];
            }
            pieces[p] = pieces[p].view(shape, pieces[p].strides(), shape.size() ? offset : 0);
        }
        return pieces;
    }

    // Sums that had to be completed for this call stay complete for the next one.
    void keep_sums(size_t i, const Laid& moved, const Distribution& to) {
        const Distribution* before = laid_[i].layout;
        const Tensor& t = tensor(rule_.operands[i]);
        if (!before || !before->partial() || to.partial() || layout_of(t) != before || !is_whole(t)) return;
        replace_content(t, moved);
    }

    void run_pieces(const Division& division) {
        for (int64_t p : held_positions(mesh_)) works_.push_back(rule_.work(division.cuts(p)));
        std::vector<std::vector<Tensor>> operands;  // for each operand the parts of the positions
        std::vector<const Distribution*> layouts;
        for (size_t i = 0; i < laid_.size(); ++i) {
            layouts.push_back(division.operand(i));
            operands.push_back(parts(i, division, *layouts.back()));
        }
        std::vector<size_t> same;
        for (size_t p = 0; p < works_.size(); ++p) same.push_back(equal_work(p, operands));
        {
            const Loan loan(*this, division, layouts, operands, same);
            const RandomStream before = default_generator().state();
            for (size_t p = 0; p < works_.size(); ++p) {
                if (same[p] < p) {
                    pieces_.push_back(pieces_[same[p]]);
                    written_.push_back(written_[same[p]]);
                    continue;
                }
                if (op_.draws()) default_generator().set_state(before);
                run_piece(operands, p, same);
            }
        }
        for (size_t i = 0; i < laid_.size() && op_.writes(); ++i) {
            std::vector<Tensor> fresh;
            for (const auto& at : written_) fresh.push_back(at[i]);
            if (std::ranges::any_of(fresh, [](const Tensor& t) { return t.version() > 0; }))
                take_back(tensor(rule_.operands[i]), {layouts[i], laid_[i].dtype, laid_[i].shape, std::move(fresh)});
        }
    }

    // What a call writes has no other owner, so that nothing is copied: the blocks of operands that stay in their
    // layout let go of their pieces while the call runs, and get what it left of them, also after an error.
    class Loan {
      public:
        Loan(DividedCall& call, const Division& division, std::span<const Distribution* const> layouts,
             std::span<const std::vector<Tensor>> operands, std::span<const size_t> same)
            : call_(call), operands_(operands), same_(same) {
            if (!call.op_.writes() || division.is_shifted()) return;
            for (size_t i = 0; i < operands.size(); ++i) {
                const Tensor& t = call.tensor(call.rule_.operands[i]);
                Laid& laid = call.laid_[i];
                // A view of the tensor keeps the elements of now: its block stays as it is.
                if (!is_laid_out(t) || t.body()->storage->refs.load(std::memory_order_acquire) != 1) continue;
                if (laid.layout != layouts[i] || layout_of(t) != layouts[i] || !is_whole(t)) continue;
                if (!std::ranges::equal(operands[i], laid.pieces, std::mem_fn(&Tensor::same_body))) continue;
                laid.pieces.clear();
                replace_content(t, laid);
                lent_.push_back(i);
            }
        }
        // The same tensor may be two operands, of which one is written.
        ~Loan() {
            for (bool written : {false, true})
                for (size_t i : lent_) {
                    Laid laid = call_.laid_[i];
                    bool has_written = false;
                    for (size_t p = 0; p < call_.works_.size(); ++p) {
                        laid.pieces.push_back(piece(i, p));
                        has_written |= laid.pieces.back().version() > 0;
                    }
                    if (has_written == written) replace_content(call_.tensor(call_.rule_.operands[i]), std::move(laid));
                }
        }
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;

      private:
        const Tensor& piece(size_t i, size_t p) const {
            const bool is_untouched = p >= call_.written_.size() && operands_[i][p];
            return is_untouched ? operands_[i][p] : call_.written_[std::min(p, same_[p])][i];
        }

        DividedCall& call_;
        const std::span<const std::vector<Tensor>> operands_;
        const std::span<const size_t> same_;
        std::vector<size_t> lent_;
    };

    // A position before this one whose work is the same on the same tensors, as on ranks that only hold copies.
    size_t equal_work(size_t p, std::span<const std::vector<Tensor>> operands) const {
        for (size_t q = 0; q < p; ++q) {
            if (works_[q].cuts != works_[p].cuts) continue;
            if (std::ranges::all_of(operands, [&](const auto& parts) { return parts[q].same_body(parts[p]); }))
                return q;
        }
        return p;
    }

    void run_piece(std::vector<std::vector<Tensor>>& operands, size_t p, std::span<const size_t> same) {
        Args local(given_.begin(), given_.end());
        std::vector<Tensor>& here = written_.emplace_back();
        for (size_t i = 0; i < operands.size(); ++i) here.push_back(own_piece(operands[i], p, same));
        for (size_t i = 0; i < operands.size(); ++i) {
            const Operand& o = rule_.operands[i];
            if (o.item < 0) {
                local[o.argument] = Value(here[i]);
                continue;
            }
            Args items = local[o.argument].items();
            items[static_cast<size_t>(o.item)] = Value(here[i]);
            local[o.argument] = Value::list(std::move(items));
        }
        const PlaceScope host(nullptr);
        pieces_.push_back(rule_.run(eager_builder(), local, works_[p]));
    }

    // The piece of a position. Where it may be written it has a count of writes of its own, and no other owner among
    // the positions with the same work.
    Tensor own_piece(std::vector<Tensor>& pieces, size_t p, std::span<const size_t> same) const {
        if (!op_.writes()) return pieces[p];
        Tensor own = pieces[p].apart();
        for (size_t q = p; q < pieces.size(); ++q)
            if (std::min(q, same[q]) == p) pieces[q] = Tensor();
        return own;
    }

    Value results(const Division& division) const {
        auto joined = [&](size_t r, auto&& piece_of_position) {
            const TensorType& type = rule_.results[r].type;
            Laid laid{division.result(r), type.dtype, type.shape, {}};
            for (const Value& v : pieces_) laid.pieces.push_back(piece_of_position(v));
            return Value(tensor_of(std::move(laid)));
        };
        if (rule_.results.size() == 1) return joined(0, [](const Value& v) { return v.tensor(); });
        Args list;
        for (size_t r = 0; r < rule_.results.size(); ++r)
            list.push_back(joined(r, [&](const Value& v) { return v.items()[r].tensor(); }));
        return Value::list(std::move(list));
    }

    const Op& op_;
    std::span<const Value> given_;
    const Mesh& mesh_;
    const Rule& rule_;
    std::vector<Laid> laid_;
    std::vector<Work> works_;                   // of the positions held here
    std::vector<Value> pieces_;                 // results of the positions
    std::vector<std::vector<Tensor>> written_;  // operands of the positions as the call left them
};

Value run_divided(const Op& op, std::span<const Value> given, const Mesh& mesh);

// A step of an optimizer for a list of parameters, one after the other.
void run_items(const Op& op, std::span<const Value> given) {
    const size_t count = given[0].items().size();
    for (size_t k = 0; k < count; ++k) {
        Args args;
        for (const Value& v : given)
            args.push_back(v.is_list() && v.items().size() == count ? Value::list({v.items()[k]}) : v);
        if (const Mesh* mesh = mesh_of(args))
            run_divided(op, args, *mesh);
        else
            run_everywhere(op, args, nullptr, "");
    }
}

Value run_divided(const Op& op, std::span<const Value> given, const Mesh& mesh) {
    const std::unique_ptr<const Rule> rule = rule_of(op, given);
    const auto is_open = [](const Result& r) { return !r.type.shape.known(); };
    if (rule->operands.empty() || (rule->results.empty() && !op.writes()) ||
        std::ranges::any_of(rule->results, is_open))
        return run_everywhere(op, given, &mesh, "the sizes of its results follow from values");
    Value result;
    DividedCall(op, given, mesh, *rule).run(result);
    return result;
}

}  // namespace

bool runs_expanded(const Op& op, bool is_divided) {
    return op.expand_fn && !op.cut_text && !op.view_fn && !(op.row_fn && is_divided);
}

bool run(const Op& op, std::span<const Value> given, Value& result) {
    if (op.host_fn) return false;
    if (is_about_places(op)) {
        result = op.view_fn(Call(op, given, DType::f32));
        return true;
    }
    check_tensor_args(op, given);
    const Mesh* mesh = mesh_of(given);
    if (runs_expanded(op, mesh != nullptr)) return false;
    if (!mesh) {
        result = run_everywhere(op, given, nullptr, "");
        return true;
    }
    if (op.is_ordered() && !op.writes())
        throw state_error(op.name(), "is for tensors of one rank, and an operand is laid out on a mesh")
            .hint("operators on laid-out tensors communicate where they have to; ms.reshard changes a layout");
    if (op.writes() && op.is_itemwise && given[0].is_list()) {
        run_items(op, given);
        result = Value::list({});
        return true;
    }
    result = run_divided(op, given, *mesh);
    return true;
}

}  // namespace lunaria::parallel
