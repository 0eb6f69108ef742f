#include "tests/parallel/layouts.h"

#include <cstring>
#include <functional>
#include <random>

#include "core/base/error.h"

namespace lunaria::parallel {
namespace {

bool equal(const Tensor& a, const Tensor& b) {
    const Tensor left = a.contiguous(), right = b.contiguous();
    return left.shape() == right.shape() && left.dtype() == right.dtype() &&
           (left.nbytes() == 0 || std::memcmp(left.raw(), right.raw(), left.nbytes()) == 0);
}

}  // namespace

const Mesh& mesh_of(const std::vector<int64_t>& sizes) {
    std::vector<std::string> names;
    for (size_t i = 0; i < sizes.size(); ++i) names.push_back(std::string(1, "xyzuvw"[i]));
    return Mesh::of("test", sizes, names);
}

std::vector<const Distribution*> all_layouts(const Mesh& mesh, int rank, Merge merge) {
    std::vector<const Distribution*> layouts;
    Distribution::Cuts cuts(static_cast<size_t>(rank));
    const std::function<void(int, AxisSet)> choose = [&](int axis, AxisSet partial) {
        if (axis == mesh.axes()) {
            layouts.push_back(Distribution::of(mesh, cuts, partial, partial ? merge : Merge::none));
            return;
        }
        choose(axis + 1, partial);
        if (merge != Merge::none) choose(axis + 1, partial | axis_bit(axis));
        for (auto& list : cuts)
            for (size_t place = 0; place <= list.size(); ++place) {
                list.insert(list.begin() + static_cast<ptrdiff_t>(place), axis);
                choose(axis + 1, partial);
                list.erase(list.begin() + static_cast<ptrdiff_t>(place));
            }
    };
    choose(0, 0);
    return layouts;
}

std::vector<const Distribution*> complete_layouts(const Mesh& mesh, int rank) {
    return all_layouts(mesh, rank, Merge::none);
}

Laid random_pieces(const Distribution& layout, const Shape& shape, DType dtype, uint32_t seed) {
    std::mt19937 random(seed);
    const Mesh& mesh = layout.mesh();
    std::vector<Tensor> terms;
    for (int64_t i = 0; i < mesh.size_of(layout.partial()); ++i) {
        const Tensor term = Tensor::empty(dtype, shape);
        for (int64_t k = 0; k < term.size(); ++k)
            const_cast<Tensor&>(term).set_at(k, static_cast<double>(random() % 7));
        terms.push_back(term);
    }
    Laid laid;
    const Distribution& complete = *layout.complete();
    for (int64_t p = 0; p < mesh.count(); ++p)
        laid.pieces.push_back(
            piece_of(terms[static_cast<size_t>(mesh.place_in_group(p, layout.partial()))], complete, p));
    // Each term is laid out alone: the ranks that hold it are a mesh of their own.
    laid.whole = Tensor::zeros(dtype, shape);
    for (int64_t k = 0; k < laid.whole.size(); ++k) {
        double value = terms[0].at(k);
        for (size_t i = 1; i < terms.size(); ++i) {
            const double other = terms[i].at(k);
            switch (layout.merge()) {
                case Merge::max:
                case Merge::any:
                    value = std::max(value, other);
                    break;
                case Merge::min:
                case Merge::all:
                    value = std::min(value, other);
                    break;
                case Merge::prod:
                    value *= other;
                    break;
                default:
                    value += other;
            }
        }
        laid.whole.set_at(k, value);
    }
    return laid;
}

std::string difference(const Distribution& layout, const Tensor& whole, const std::vector<Tensor>& pieces) {
    const Mesh& mesh = layout.mesh();
    if (static_cast<int64_t>(pieces.size()) != mesh.count()) return "the number of pieces";
    for (int64_t p = 0; p < mesh.count(); ++p) {
        if (!(pieces[static_cast<size_t>(p)].shape() == layout.piece_shape(whole.shape(), p)))
            return str("the shape of piece ", p);
        for (int64_t twin : mesh.group(p, layout.replicated_axes()))
            if (!equal(pieces[static_cast<size_t>(p)], pieces[static_cast<size_t>(twin)]))
                return str("pieces ", p, " and ", twin, " differ");
    }
    return equal(whole_of(layout, whole.shape(), whole.dtype(), pieces), whole) ? "" : "the values";
}

}  // namespace lunaria::parallel
