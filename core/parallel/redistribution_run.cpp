// The execution of plans. A step is carried out part by part: each rank sends regions of its piece, combines what it
// gets in the order of terms, and passes it on. One process with all pieces copies between them; a rank asks its
// communicator for the collective of the step, whose order of terms is the same.
#include <algorithm>
#include <limits>
#include <map>
#include <type_traits>

#include "core/base/error.h"
#include "core/parallel/combine.h"
#include "core/parallel/communicator.h"
#include "core/parallel/redistribution.h"

namespace lunaria::parallel {
namespace {

Combine combine_of(Merge merge) {
    switch (merge) {
        case Merge::max:
        case Merge::any:
            return Combine::max;
        case Merge::min:
        case Merge::all:
            return Combine::min;
        case Merge::prod:
            return Combine::product;
        default:
            return Combine::sum;
    }
}

// A region of the whole tensor as a view of a piece, which begins at the start of `place`.
Tensor part_of(const Tensor& piece, const Region& place, const Region& region) {
    int64_t offset = 0;
    for (int i = 0; i < piece.rank(); ++i)
        offset += (region[static_cast<size_t>(i)].begin - place[static_cast<size_t>(i)].begin) * piece.strides()[i];
    return piece.view(shape_of(region), piece.strides(), offset);
}

void write(const Tensor& piece, const Region& place, const Region& region, const Tensor& values) {
    if (elements(region) > 0) copy_elements(values, part_of(piece, place, region));
}

Tensor combined(std::span<const Tensor> terms, Merge merge) {
    if (terms.size() == 1) return terms[0];
    std::vector<Tensor> dense;
    std::vector<const void*> addresses;
    for (const Tensor& term : terms) {
        dense.push_back(term.contiguous());
        addresses.push_back(dense.back().raw());
    }
    Tensor result = Tensor::like(dense[0]);
    if (result.size() > 0) combine(combine_of(merge), result.dtype(), addresses, result.raw(), result.size());
    return result;
}

// A piece as it is before anything is put into it.
Tensor blank(const Distribution& layout, const Shape& shape, DType dtype) {
    return layout.partial() ? neutral(dtype, shape, layout.merge()) : Tensor::empty(dtype, shape);
}

void check_piece(const Distribution& layout, const Shape& shape, int64_t position, const Tensor& piece, DType dtype) {
    const Shape expected = layout.piece_shape(shape, position);
    if (!piece || !(piece.shape() == expected) || piece.dtype() != dtype || piece.device())
        throw shape_error("redistribute",
                          str("the piece at position ", position, " of ", layout.text(dtype, shape), " is ",
                              piece ? str(name_of(piece.dtype()), " ", piece.shape()) : "missing", ", not ",
                              name_of(dtype), " ", expected));
}

// All pieces in one process

std::vector<Tensor> run_exchange(const Exchange& exchange, const Plan& plan, const std::vector<Tensor>& pieces) {
    const Distribution &from = *exchange.from, &to = *exchange.to;
    std::vector<Region> sources, targets;
    for (int64_t p = 0; p < from.mesh().count(); ++p) sources.push_back(from.piece(plan.shape, p));
    for (int64_t p = 0; p < to.mesh().count(); ++p) targets.push_back(to.piece(plan.shape, p));
    std::vector<Tensor> results;
    for (const Region& region : targets) results.push_back(blank(to, shape_of(region), plan.dtype));
    std::vector<Tensor> terms;
    for (const Part& part : exchange.parts) {
        terms.clear();
        for (int64_t h : part.holders)
            terms.push_back(part_of(pieces[static_cast<size_t>(h)], sources[static_cast<size_t>(h)], part.region));
        const Tensor values = combined(terms, from.merge());
        const auto put = [&](int64_t t) {
            write(results[static_cast<size_t>(t)], targets[static_cast<size_t>(t)], part.region, values);
        };
        put(part.root);
        std::for_each(part.targets.begin(), part.targets.end(), put);
    }
    return results;
}

std::vector<Tensor> run_all_reduce(const Step& step, const std::vector<Tensor>& pieces) {
    const Mesh& mesh = step.from->mesh();
    std::vector<Tensor> results(pieces.size()), terms;
    for (int64_t p = 0; p < mesh.count(); ++p) {
        if (results[static_cast<size_t>(p)]) continue;
        const std::vector<int64_t> group = mesh.group(p, step.axes);
        terms.clear();
        for (int64_t member : group) terms.push_back(pieces[static_cast<size_t>(member)]);
        const Tensor values = combined(terms, step.from->merge());
        for (int64_t member : group) results[static_cast<size_t>(member)] = values;
    }
    return results;
}

// One rank

class RankRun {
  public:
    RankRun(const Plan& plan, Communicator& communicator) : plan_(plan), communicator_(communicator) {}

    Tensor run(const Step& step, const Tensor& piece) {
        step_ = &step;
        source_ = step.from->mesh().position(communicator_.rank());
        target_ = step.to->mesh().position(communicator_.rank());
        if (source_ >= 0) check_piece(*step.from, plan_.shape, source_, piece, plan_.dtype);
        switch (step.kind) {
            case StepKind::slice:
            case StepKind::place:
                return local(piece);
            case StepKind::all_reduce:
                return all_reduce(piece);
            case StepKind::all_gather:
                return all_gather(piece);
            case StepKind::reduce_scatter:
                return reduce_scatter(piece);
            default:
                return exchange(piece);
        }
    }

  private:
    Region region(const Distribution& layout, int64_t position) const { return layout.piece(plan_.shape, position); }

    Tensor local(const Tensor& piece) const {
        Tensor result = blank(*step_->to, step_->to->piece_shape(plan_.shape, target_), plan_.dtype);
        const Region mine = region(*step_->to, target_);
        // Placing: a rank keeps its piece; where several have it, the first one.
        const Distribution &from = *step_->from, &to = *step_->to;
        const Region own = region(from, source_), kept = intersection(own, mine);
        if (from.mesh().place_in_group(source_, to.partial() & from.replicated_axes()) == 0)
            write(result, mine, kept, part_of(piece, own, kept));
        return result;
    }

    Request request(Collective operation, const Tensor& in, const Tensor& out) {
        std::vector<int> ranks;
        members_ = step_->from->mesh().group(source_, step_->axes);
        for (int64_t p : members_) ranks.push_back(step_->from->mesh().rank(p));
        Request r;
        r.operation = operation;
        r.group = &communicator_.group(ranks);
        r.dtype = plan_.dtype;
        r.combine = combine_of(step_->from->merge());
        r.in = in.raw();
        r.out = out.raw();
        return r;
    }

    Tensor all_reduce(const Tensor& piece) {
        const Tensor dense = piece.contiguous(), result = Tensor::like(dense);
        Request r = request(Collective::all_reduce, dense, result);
        r.count = dense.size();
        communicator_.run(r);
        return result;
    }

    Tensor all_gather(const Tensor& piece) {
        const Tensor dense = piece.contiguous();
        const Tensor result = Tensor::empty(plan_.dtype, step_->to->piece_shape(plan_.shape, target_));
        const Tensor all = Tensor::empty(plan_.dtype, {result.size()});
        Request r = request(Collective::all_gather, dense, all);
        std::vector<Region> regions;
        std::vector<int64_t> counts;
        for (int64_t p : members_) {
            regions.push_back(region(*step_->from, p));
            counts.push_back(elements(regions.back()));
        }
        r.count = dense.size();
        r.counts = counts;
        communicator_.run(r);
        const Region mine = region(*step_->to, target_);
        int64_t offset = 0;
        for (size_t i = 0; i < regions.size(); offset += counts[i++])
            write(result, mine, regions[i], packed(all, offset, shape_of(regions[i])));
        return result;
    }

    Tensor reduce_scatter(const Tensor& piece) {
        const Tensor all = Tensor::empty(plan_.dtype, {piece.size()});
        const Tensor result = Tensor::empty(plan_.dtype, step_->to->piece_shape(plan_.shape, target_));
        Request r = request(Collective::reduce_scatter, all, result);
        const Region mine = region(*step_->from, source_);
        std::vector<int64_t> counts;
        int64_t offset = 0;
        for (int64_t p : members_) {
            const Region theirs = region(*step_->to, p);
            if (elements(theirs) > 0)
                copy_elements(part_of(piece, mine, theirs), packed(all, offset, shape_of(theirs)));
            counts.push_back(elements(theirs));
            offset += counts.back();
        }
        r.count = result.size();
        r.counts = counts;
        communicator_.run(r);
        return result;
    }

    static Tensor packed(const Tensor& all, int64_t offset, const Shape& shape) {
        return all.view(shape, contiguous_strides(shape), offset);
    }

    // What this rank sends to each of a group and gets from each, in the order of parts, which all ranks know.
    struct Traffic {
        std::map<int, std::vector<const Tensor*>> sent;  // by place in the group
    };

    Tensor exchange(const Tensor& piece) {
        const Exchange exchange = exchange_between(*step_->from, *step_->to, plan_.shape, step_->way, step_->axes);
        const Mesh &sources = step_->from->mesh(), &targets = step_->to->mesh();
        const Group& group = group_of_both();
        const int me = communicator_.rank();
        Region own, mine;
        Tensor result;
        if (source_ >= 0) own = region(*step_->from, source_);
        if (target_ >= 0) {
            mine = region(*step_->to, target_);
            result = blank(*step_->to, shape_of(mine), plan_.dtype);
        }

        // First the terms go to the roots ...
        std::vector<Message> messages;
        for (size_t i = 0; i < exchange.parts.size(); ++i)
            for (int64_t h : exchange.parts[i].holders) {
                const int giver = sources.rank(h), taker = targets.rank(exchange.parts[i].root);
                if (giver == me || taker == me) messages.push_back({i, giver, taker, {}});
                if (giver == me) messages.back().values = part_of(piece, own, exchange.parts[i].region);
            }
        deliver(exchange, group, messages);
        std::map<size_t, std::vector<Tensor>> terms;
        for (Message& m : messages)
            if (m.taker == me) terms[m.part].push_back(m.values);

        // ... which combine them and pass them on.
        messages.clear();
        bool is_passed_on = false;
        for (size_t i = 0; i < exchange.parts.size(); ++i) {
            const Part& part = exchange.parts[i];
            const int giver = targets.rank(part.root);
            is_passed_on = is_passed_on || !part.targets.empty();
            Tensor values;
            if (giver == me) {
                values = combined(terms[i], step_->from->merge());
                write(result, mine, part.region, values);
            }
            for (int64_t t : part.targets)
                if (giver == me || targets.rank(t) == me) messages.push_back({i, giver, targets.rank(t), values});
        }
        if (!is_passed_on) return result;
        deliver(exchange, group, messages);
        for (const Message& m : messages)
            if (m.taker == me) write(result, mine, exchange.parts[m.part].region, m.values);
        return result;
    }

    struct Message {
        size_t part;
        int giver, taker;
        Tensor values;  // of the giver; of the taker after deliver()
    };

    // All ranks of both meshes; of one mesh those that differ along the axes that have a share in the step.
    const Group& group_of_both() {
        std::vector<int> ranks;
        const Mesh &sources = step_->from->mesh(), &targets = step_->to->mesh();
        if (&sources == &targets) {
            for (int64_t p : sources.group(source_, step_->axes)) ranks.push_back(sources.rank(p));
        } else {
            for (const Mesh* mesh : {&sources, &targets})
                for (int64_t p = 0; p < mesh->count(); ++p) ranks.push_back(mesh->rank(p));
            std::sort(ranks.begin(), ranks.end());
            ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
        }
        return communicator_.group(ranks);
    }

    // Sends this rank's values and fills in those that it gets. Messages to this rank itself stay as they are.
    void deliver(const Exchange& exchange, const Group& group, std::vector<Message>& messages) {
        const int me = communicator_.rank();
        std::vector<int64_t> sent(static_cast<size_t>(group.size())), received = sent;
        for (const Message& m : messages) {
            if (m.giver == m.taker) continue;
            const int other = m.giver == me ? m.taker : m.giver;
            (m.giver == me ? sent : received)[static_cast<size_t>(group.place_of(other))] +=
                elements(exchange.parts[m.part].region);
        }
        const auto starts = [](const std::vector<int64_t>& counts) {
            std::vector<int64_t> at = {0};
            for (int64_t n : counts) at.push_back(at.back() + n);
            return at;
        };
        std::vector<int64_t> out_at = starts(sent), in_at = starts(received);
        const Tensor outgoing = Tensor::empty(plan_.dtype, {out_at.back()});
        const Tensor incoming = Tensor::empty(plan_.dtype, {in_at.back()});
        for (Message& m : messages) {
            if (m.giver != me || m.taker == me) continue;
            int64_t& at = out_at[static_cast<size_t>(group.place_of(m.taker))];
            copy_elements(m.values, packed(outgoing, at, m.values.shape()));
            at += m.values.size();
        }
        Request r;
        r.operation = Collective::all_to_all_v;
        r.group = &group;
        r.dtype = plan_.dtype;
        r.in = outgoing.raw();
        r.out = incoming.raw();
        r.counts = sent;
        r.receive_counts = received;
        communicator_.run(r);
        for (Message& m : messages) {
            if (m.taker != me || m.giver == me) continue;
            int64_t& at = in_at[static_cast<size_t>(group.place_of(m.giver))];
            m.values = packed(incoming, at, shape_of(exchange.parts[m.part].region));
            at += m.values.size();
        }
    }

    const Plan& plan_;
    Communicator& communicator_;
    const Step* step_ = nullptr;
    int64_t source_ = -1, target_ = -1;
    std::vector<int64_t> members_;
};

}  // namespace

std::vector<Tensor> redistribute(const Plan& plan, std::vector<Tensor> pieces) {
    if (static_cast<int64_t>(pieces.size()) != plan.from->mesh().count())
        throw argument_error("redistribute", str(pieces.size(), " pieces are given for a mesh of ",
                                                 plan.from->mesh().count(), " ranks"));
    for (size_t p = 0; p < pieces.size(); ++p)
        check_piece(*plan.from, plan.shape, static_cast<int64_t>(p), pieces[p], plan.dtype);
    for (const Step& step : plan.steps)
        pieces =
            step.kind == StepKind::all_reduce
                ? run_all_reduce(step, pieces)
                : run_exchange(exchange_between(*step.from, *step.to, plan.shape, step.way, step.axes), plan, pieces);
    return pieces;
}

Tensor redistribute(const Plan& plan, Tensor piece, Communicator& communicator) {
    RankRun run(plan, communicator);
    for (const Step& step : plan.steps) piece = run.run(step, piece);
    return piece;
}

Tensor neutral(DType dtype, const Shape& shape, Merge merge) {
    if (merge == Merge::sum || merge == Merge::any || merge == Merge::none) return Tensor::zeros(dtype, shape);
    if (merge == Merge::prod || merge == Merge::all) return Tensor::full(dtype, shape, 1);
    Tensor result = Tensor::empty(dtype, shape);
    visit_dtype(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (kIsComplex<T>) {
            throw dtype_error("redistribute", "complex numbers have no order");
        } else {
            T value{};
            if constexpr (std::is_integral_v<T>)
                value = merge == Merge::max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
            else
                value = static_cast<T>(merge == Merge::max ? -std::numeric_limits<float>::infinity()
                                                           : std::numeric_limits<float>::infinity());
            std::fill_n(result.data<T>(), result.size(), value);
        }
    });
    return result;
}

Tensor piece_of(const Tensor& whole, const Distribution& layout, int64_t position) {
    const Region place = layout.piece(whole.shape(), position);
    Tensor piece = blank(layout, shape_of(place), whole.dtype());
    if (layout.mesh().place_in_group(position, layout.partial()) == 0) {
        const Region all = parallel::whole(whole.shape());
        write(piece, place, place, part_of(whole.to_host(), all, place));
    }
    return piece;
}

Tensor whole_of(const Distribution& layout, const Shape& shape, DType dtype, std::span<const Tensor> pieces) {
    const Tensor result = Tensor::empty(dtype, shape);
    const Region all = parallel::whole(shape);
    std::vector<Tensor> terms;
    for (int64_t p = 0; p < layout.mesh().count(); ++p) {
        if (layout.mesh().place_in_group(p, layout.replicated_axes() | layout.partial()) != 0) continue;
        terms.clear();
        for (int64_t member : layout.mesh().group(p, layout.partial()))
            terms.push_back(pieces[static_cast<size_t>(member)].to_host());
        write(result, all, layout.piece(shape, p), combined(terms, layout.merge()));
    }
    return result;
}

}  // namespace lunaria::parallel
