#include "core/parallel/laid.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "core/parallel/communicator.h"
#include "core/parallel/redistribution.h"
#include "core/parallel/traffic.h"
#include "core/tensor/device.h"

namespace lunaria::parallel {

namespace {

// The communicator of a process that is one of several ranks; null where all ranks are simulated here.
Communicator* other_ranks() {
    Communicator* const all = world();
    return all && all->ranks() > 1 ? all : nullptr;
}

// What this rank has received until now.
uint64_t bytes_received(const Communicator& all) {
    uint64_t bytes = 0;
    for (size_t c = 0; c < kCollectives; ++c) bytes += all.traffic(static_cast<Collective>(c)).bytes;
    return bytes;
}

// The pieces of a tensor that every rank has.
Laid cut(const Tensor& all, const Distribution& to) {
    Laid result{&to, all.dtype(), all.shape(), {}};
    // Ranks that hold the same piece share it.
    std::map<std::vector<int64_t>, Tensor> made;
    for (int64_t p : held_positions(to.mesh())) {
        std::vector<int64_t> place;
        for (int m = 0; m < to.mesh().axes(); ++m)
            place.push_back(has_axis(to.replicated_axes(), m) ? 0 : to.mesh().coordinate(p, m));
        Tensor& piece = made[place];
        if (!piece) piece = to.is_replicated() ? all : piece_of(all, to, p);
        result.pieces.push_back(piece);
    }
    return result;
}

}  // namespace

std::vector<int64_t> held_positions(const Mesh& mesh) {
    if (const Communicator* all = other_ranks()) {
        if (all->ranks() < mesh.count())
            throw state_error("mesh", str("has ", mesh.count(), " ranks, and ", all->ranks(), " were started"))
                .hint(str("lunaria launch -n ", mesh.count(), " script.lua"));
        const int64_t own = mesh.position(all->rank());
        return own < 0 ? std::vector<int64_t>{} : std::vector<int64_t>{own};
    }
    std::vector<int64_t> list(static_cast<size_t>(mesh.count()));
    for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<int64_t>(i);
    return list;
}

Laid in_layout(const Laid& x, const Distribution& to, const Cause& cause) {
    if (x.layout == &to) return x;
    const PlaceScope host(nullptr);
    if (!x.layout) return cut(x.pieces[0], to);
    if (x.layout->is_replicated() && &x.layout->mesh() == &to.mesh() && !x.pieces.empty()) return cut(x.pieces[0], to);
    const Plan plan = plan_redistribution(*x.layout, to, x.shape, x.dtype);
    return carry_out(x, plan, plan.total_bytes ? move_of(x, plan) : Move(), cause);
}

bool has_other_ranks() { return other_ranks() != nullptr; }

Laid carry_out(const Laid& x, const Plan& plan, const Move& move, const Cause& cause) {
    const PlaceScope host(nullptr);
    check_movement(move, cause);
    Laid result{plan.to, x.dtype, x.shape, {}};
    if (Communicator* all = other_ranks()) {
        const uint64_t before = bytes_received(*all);
        const Tensor piece = redistribute(plan, x.pieces.empty() ? Tensor() : x.pieces[0], *all);
        if (piece) result.pieces.push_back(piece);
        note_movement(move, cause, static_cast<int64_t>(bytes_received(*all) - before));
    } else {
        result.pieces = redistribute(plan, x.pieces);
        note_movement(move, cause, plan.total_bytes);
    }
    return result;
}

namespace {

// A part of a tensor: of the rank at `from`, for the one at `to`.
struct Message {
    int64_t from = 0, to = 0;
    Region region;
};

// All that the positions of the mesh get from others or keep, in an order that all of them know.
std::vector<Message> messages_for(const Laid& x, std::span<const Region> needed) {
    std::vector<Message> list;
    for (int64_t to = 0; to < x.layout->mesh().count(); ++to)
        // Ranks that differ in the axes that cut have different pieces, and together the whole tensor.
        for (int64_t from : x.layout->mesh().group(to, x.layout->cut_axes())) {
            Region region = intersection(needed[static_cast<size_t>(to)], x.layout->piece(x.shape, from));
            if (elements(region) > 0) list.push_back({from, to, std::move(region)});
        }
    return list;
}

// The elements of a region of the whole tensor in a part of it that begins at `place`.
Tensor region_of(const Tensor& part, const Region& place, const Region& region) {
    int64_t offset = 0;
    for (size_t a = 0; a < region.size(); ++a)
        offset += (region[a].begin - place[a].begin) * part.strides()[static_cast<int>(a)];
    return part.view(shape_of(region), part.strides(), offset);
}

Tensor packed(const Tensor& row, int64_t& at, const Region& region) {
    const Shape shape = shape_of(region);
    at += shape.size();
    return row.view(shape, contiguous_strides(shape), at - shape.size());
}

// Sends and gets the parts of one rank.
void exchange(const Laid& x, std::span<const Message> messages, int64_t own, const Region& needed, const Tensor& result,
              Communicator& all) {
    const Mesh& mesh = x.layout->mesh();
    std::vector<int> ranks;
    std::vector<int64_t> sent(static_cast<size_t>(mesh.count())), received(sent);
    for (int64_t p = 0; p < mesh.count(); ++p) ranks.push_back(mesh.rank(p));
    for (const Message& m : messages) {
        if (m.from == own && m.to != own) sent[static_cast<size_t>(m.to)] += elements(m.region);
        if (m.to == own && m.from != own) received[static_cast<size_t>(m.from)] += elements(m.region);
    }
    const Tensor outgoing = Tensor::empty(x.dtype, {std::accumulate(sent.begin(), sent.end(), int64_t{0})});
    const Tensor incoming = Tensor::empty(x.dtype, {std::accumulate(received.begin(), received.end(), int64_t{0})});
    const Region place = x.layout->piece(x.shape, own);
    // Messages are in the order of their targets, and of their sources for each target.
    int64_t at = 0;
    for (const Message& m : messages)
        if (m.from == own && m.to != own)
            copy_elements(region_of(x.pieces[0], place, m.region), packed(outgoing, at, m.region));
    Request request;
    request.operation = Collective::all_to_all_v;
    request.group = &all.group(ranks);
    request.dtype = x.dtype;
    request.in = outgoing.raw();
    request.out = incoming.raw();
    request.counts = sent;
    request.receive_counts = received;
    all.run(request);
    at = 0;
    for (const Message& m : messages)
        if (m.to == own && m.from != own)
            copy_elements(packed(incoming, at, m.region), region_of(result, needed, m.region));
}

}  // namespace

std::vector<Tensor> parts_of(const Laid& x, std::span<const Region> needed, const Cause& cause) {
    const PlaceScope host(nullptr);
    const std::vector<Message> messages = messages_for(x, needed);
    Move move{x.layout->text(x.dtype, x.shape), "parts of others", "exchange", 0, true};
    for (const Message& m : messages)
        if (m.from != m.to) move.bytes += elements(m.region) * static_cast<int64_t>(size_of(x.dtype));
    check_movement(move, cause);
    const std::vector<int64_t> held = held_positions(x.layout->mesh());
    std::vector<Tensor> parts;
    for (int64_t p : held) parts.push_back(Tensor::empty(x.dtype, shape_of(needed[static_cast<size_t>(p)])));
    Communicator* const all = other_ranks();
    for (const Message& m : messages) {
        if (all && (m.from != held[0] || m.to != held[0])) continue;
        const size_t to = all ? 0 : static_cast<size_t>(m.to), from = all ? 0 : static_cast<size_t>(m.from);
        copy_elements(region_of(x.pieces[from], x.layout->piece(x.shape, m.from), m.region),
                      region_of(parts[to], needed[static_cast<size_t>(m.to)], m.region));
    }
    if (!all) {
        note_movement(move, cause, move.bytes);
    } else if (!held.empty() && move.bytes) {
        const uint64_t before = bytes_received(*all);
        exchange(x, messages, held[0], needed[static_cast<size_t>(held[0])], parts[0], *all);
        note_movement(move, cause, static_cast<int64_t>(bytes_received(*all) - before));
    }
    return parts;
}

Tensor whole(const Laid& x, const Cause& cause) {
    if (!x.layout) return x.pieces[0];
    const Laid all = in_layout(x, *Distribution::replicated(x.layout->mesh(), x.shape.rank()), cause);
    if (all.pieces.empty())
        throw state_error(
            "mesh", str("this rank is none of the mesh ", x.layout->mesh().text(), " that the tensor is laid out on"));
    return all.pieces[0];
}

}  // namespace lunaria::parallel
