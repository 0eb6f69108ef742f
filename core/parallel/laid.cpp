#include "core/parallel/laid.h"

#include <algorithm>
#include <map>

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
    check_movement(x, plan, cause);
    Laid result{&to, x.dtype, x.shape, {}};
    if (Communicator* all = other_ranks()) {
        const uint64_t before = bytes_received(*all);
        const Tensor piece = redistribute(plan, x.pieces.empty() ? Tensor() : x.pieces[0], *all);
        if (piece) result.pieces.push_back(piece);
        note_movement(x, plan, cause, static_cast<int64_t>(bytes_received(*all) - before));
    } else {
        result.pieces = redistribute(plan, x.pieces);
        note_movement(x, plan, cause, plan.total_bytes);
    }
    return result;
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
