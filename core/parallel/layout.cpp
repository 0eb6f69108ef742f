#include "core/parallel/layout.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "core/base/error.h"
#include "core/tensor/tensor_text.h"

namespace lunaria {

using parallel::AxisSet;
using parallel::has_axis;
using parallel::Interval;
using parallel::Merge;
using parallel::Mesh;
using parallel::Region;

const Distribution* Distribution::of(const Mesh& mesh, const Cuts& cuts, AxisSet partial, Merge merge) {
    AxisSet used = 0, cut_axes = 0;
    const auto use = [&](int axis) {
        if (axis < 0 || axis >= mesh.axes())
            throw argument_error("layout", str("the mesh (", mesh.text(), ") has no axis number ", axis));
        if (has_axis(used, axis))
            throw argument_error("layout", str("axis ", mesh.name(axis), " of the mesh is used twice"))
                .hint("a mesh axis cuts one axis of the tensor at most, and is not partial as well");
        used |= parallel::axis_bit(axis);
    };
    if (cuts.size() > kMaxRank) throw argument_error("layout", str("a tensor has at most ", kMaxRank, " axes"));
    for (const auto& list : cuts)
        for (int axis : list) use(axis);
    cut_axes = used;
    if (partial & ~mesh.all_axes()) use(mesh.axes());
    for (int a = 0; a < mesh.axes(); ++a)
        if (has_axis(partial, a)) use(a);
    if ((partial == 0) != (merge == Merge::none))
        throw argument_error("layout", "partial axes and their merge belong together");

    using Key = std::tuple<const Mesh*, Cuts, AxisSet, Merge>;
    static std::mutex mutex;
    static std::map<Key, std::unique_ptr<const Distribution>> known;
    const std::lock_guard lock(mutex);
    std::unique_ptr<const Distribution>& entry = known[Key(&mesh, cuts, partial, merge)];
    if (!entry) {
        std::unique_ptr<Distribution> made(new Distribution);
        made->mesh_ = &mesh;
        made->cuts_ = cuts;
        made->cut_axes_ = cut_axes;
        made->partial_ = partial;
        made->merge_ = merge;
        entry = std::move(made);
    }
    return entry.get();
}

const Distribution* Distribution::replicated(const Mesh& mesh, int rank) {
    return of(mesh, Cuts(static_cast<size_t>(rank)));
}

int64_t Distribution::parts(int axis) const {
    int64_t n = 1;
    for (int a : cuts(axis)) n *= mesh_->size(a);
    return n;
}

const Distribution* Distribution::with_cut(int axis, std::vector<int> mesh_axes) const {
    Cuts changed = cuts_;
    changed[static_cast<size_t>(axis)] = std::move(mesh_axes);
    return of(*mesh_, changed, partial_, merge_);
}

const Distribution* Distribution::with_partial(AxisSet partial, Merge merge) const {
    return of(*mesh_, cuts_, partial, partial ? merge : Merge::none);
}

Interval Distribution::interval(int axis, int64_t size, int64_t position) const {
    Interval all = {0, size};
    for (int a : cuts(axis)) {
        const Interval part = parallel::piece_of(all.size(), mesh_->coordinate(position, a), mesh_->size(a));
        all = {all.begin + part.begin, all.begin + part.end};
    }
    return all;
}

Region Distribution::piece(const Shape& shape, int64_t position) const {
    Region region(static_cast<size_t>(rank()));
    for (int i = 0; i < rank(); ++i) region[static_cast<size_t>(i)] = interval(i, shape[i], position);
    return region;
}

Shape Distribution::piece_shape(const Shape& shape, int64_t position) const {
    Shape sizes = shape;
    for (int i = 0; i < rank(); ++i) sizes[i] = interval(i, shape[i], position).size();
    return sizes;
}

bool Distribution::is_even(const Shape& shape) const {
    for (int i = 0; i < rank(); ++i)
        if (shape[i] % parts(i) != 0) return false;
    return true;
}

std::string Distribution::text() const { return text_of(nullptr); }
std::string Distribution::text(const Shape& shape) const { return text_of(&shape); }
std::string Distribution::text(DType dtype, const Shape& shape) const { return dtype_text(dtype) + text_of(&shape); }

std::string Distribution::text_of(const Shape* shape) const {
    std::string text = "[";
    for (int i = 0; i < rank(); ++i) {
        if (i) text += ", ";
        if (shape) text += (*shape)[i] == kUnknownDim ? "*" : str((*shape)[i]);
        if (!shape && cuts(i).empty()) text += "*";
        for (size_t k = 0; k < cuts(i).size(); ++k) text += (k ? "." : "@") + mesh_->name(cuts(i)[k]);
    }
    text += "]";
    if (!partial_) return text;
    text += merge_ == Merge::sum ? " +" : str(" ", name_of(merge_), " ");
    return text + mesh_->names_of(partial_);
}

namespace {

// The text of a layout, read from left to right.
class Reader {
  public:
    Reader(std::string_view where, const Mesh& mesh, std::string_view text)
        : where_(where), mesh_(mesh), text_(text), rest_(text) {}

    std::pair<const Distribution*, Shape> read() {
        const size_t open = rest_.find('[');
        if (open == std::string_view::npos) fail();
        rest_.remove_prefix(open + 1);
        Distribution::Cuts cuts;
        Shape shape;
        while (!take(']')) {
            if (!cuts.empty() && !take(',')) fail();
            shape.push_back(size());
            cuts.push_back(take('@') ? axes() : std::vector<int>());
        }
        skip_spaces();
        if (rest_.empty()) return {Distribution::of(mesh_, cuts), shape};
        Merge merge = Merge::sum;
        if (!take('+')) {
            const auto parsed = parallel::parse_merge(word());
            if (!parsed || *parsed == Merge::none) fail();
            merge = *parsed;
        }
        AxisSet partial = 0;
        for (int axis : axes()) partial |= parallel::axis_bit(axis);
        skip_spaces();
        if (!rest_.empty()) fail();
        return {Distribution::of(mesh_, cuts, partial, merge), shape};
    }

  private:
    [[noreturn]] void fail() const {
        throw argument_error(where_, str("'", text_, "' is no layout")).hint("write it as \"[8@dp, 4@tp.sp] +pp\"");
    }
    void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }
    bool take(char c) {
        skip_spaces();
        if (rest_.empty() || rest_[0] != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    int64_t size() {
        skip_spaces();
        int64_t value = kUnknownDim;
        const char* end = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value).ptr;
        const auto length = static_cast<size_t>(end - rest_.data());
        if (length == 0 && !take('*') && rest_.substr(0, 1) != "@") fail();
        if (length > 0 && value < 0) fail();
        rest_.remove_prefix(length);
        return value;
    }
    std::string_view word() {
        skip_spaces();
        const std::string_view found = rest_.substr(0, rest_.find_first_of(" .,]@"));
        rest_.remove_prefix(found.size());
        return found;
    }
    std::vector<int> axes() {
        std::vector<int> list;
        do list.push_back(mesh_.axis(where_, word()));
        while (take('.'));
        return list;
    }

    std::string_view where_;
    const Mesh& mesh_;
    std::string_view text_, rest_;
};

}  // namespace

std::pair<const Distribution*, Shape> Distribution::parse(std::string_view where, const Mesh& mesh,
                                                          std::string_view text) {
    return Reader(where, mesh, text).read();
}

}  // namespace lunaria
