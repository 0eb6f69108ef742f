#include "core/parallel/mesh.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "core/base/error.h"

namespace lunaria::parallel {
namespace {

bool is_word(std::string_view name) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !name.empty() && letter(name[0]) &&
           std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void check_axes(std::string_view where, std::span<const int64_t> sizes, std::span<const std::string> names) {
    if (sizes.size() != names.size())
        throw argument_error(where, str("the mesh has ", sizes.size(), " sizes and ", names.size(), " names"));
    if (sizes.size() > kMaxMeshAxes)
        throw argument_error(where,
                             str("the mesh has ", sizes.size(), " axes; at most ", kMaxMeshAxes, " are possible"));
    int64_t count = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (!is_word(names[i]))
            throw argument_error(where, str("'", names[i], "' cannot name an axis of a mesh"))
                .hint("use letters, digits and underscores, such as \"dp\"");
        if (std::find(names.begin(), names.begin() + static_cast<ptrdiff_t>(i), names[i]) !=
            names.begin() + static_cast<ptrdiff_t>(i))
            throw argument_error(where, str("two axes of the mesh are named '", names[i], "'"));
        if (sizes[i] < 1) throw argument_error(where, str("axis ", names[i], " of the mesh has size ", sizes[i]));
        if (sizes[i] > kMaxRanks / count)
            throw argument_error(where, str("the mesh has more than ", kMaxRanks, " ranks"));
        count *= sizes[i];
    }
}

void check_ranks(std::string_view where, std::span<const int> ranks, int64_t count) {
    if (static_cast<int64_t>(ranks.size()) != count)
        throw argument_error(where, str("the mesh has ", count, " places and the list has ", ranks.size(), " ranks"));
    std::vector<int> sorted(ranks.begin(), ranks.end());
    std::sort(sorted.begin(), sorted.end());
    if (sorted.front() < 0) throw argument_error(where, str("rank ", sorted.front(), " of the mesh is negative"));
    const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
    if (twin != sorted.end()) throw argument_error(where, str("rank ", *twin, " occurs twice in the mesh"));
}

bool counts_up(std::span<const int> ranks) {
    for (size_t i = 0; i < ranks.size(); ++i)
        if (ranks[i] != static_cast<int>(i)) return false;
    return true;
}

}  // namespace

const Mesh& Mesh::of(std::string_view where, std::span<const int64_t> sizes, std::span<const std::string> names,
                     std::span<const int> ranks) {
    check_axes(where, sizes, names);
    const int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
    if (!ranks.empty()) check_ranks(where, ranks, count);
    if (counts_up(ranks)) ranks = {};

    using Key = std::pair<std::vector<std::pair<std::string, int64_t>>, std::vector<int>>;
    static std::mutex mutex;
    static std::map<Key, std::unique_ptr<const Mesh>> known;
    Key key;
    for (size_t i = 0; i < sizes.size(); ++i) key.first.emplace_back(names[i], sizes[i]);
    key.second.assign(ranks.begin(), ranks.end());

    const std::lock_guard lock(mutex);
    std::unique_ptr<const Mesh>& entry = known[std::move(key)];
    if (!entry) {
        std::unique_ptr<Mesh> mesh(new Mesh);
        mesh->sizes_.assign(sizes.begin(), sizes.end());
        mesh->names_.assign(names.begin(), names.end());
        mesh->ranks_.assign(ranks.begin(), ranks.end());
        mesh->count_ = count;
        mesh->strides_.resize(sizes.size());
        for (size_t i = sizes.size(), stride = 1; i-- > 0; stride *= static_cast<size_t>(sizes[i]))
            mesh->strides_[i] = static_cast<int64_t>(stride);
        entry = std::move(mesh);
    }
    return *entry;
}

const Mesh& Mesh::parse(std::string_view where, std::string_view text) {
    std::vector<int64_t> sizes;
    std::vector<std::string> names;
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::string_view item = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), item.size() + 1));
        const size_t start = item.find_first_not_of(' '), equal = item.find('=');
        int64_t size = 0;
        const char* end = item.data() + item.size();
        if (start == std::string_view::npos || equal == std::string_view::npos || equal < start ||
            std::from_chars(item.data() + equal + 1, end, size).ptr != end)
            throw argument_error(where, str("'", text, "' is no mesh")).hint("write it as \"dp=4, tp=2\"");
        names.emplace_back(item.substr(start, equal - start));
        sizes.push_back(size);
    }
    return of(where, sizes, names);
}

int64_t Mesh::size_of(AxisSet axes) const {
    int64_t n = 1;
    for (int a = 0; a < this->axes(); ++a)
        if (has_axis(axes, a)) n *= size(a);
    return n;
}

int Mesh::find(std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return found == names_.end() ? -1 : static_cast<int>(found - names_.begin());
}

int Mesh::axis(std::string_view where, std::string_view name) const {
    const int found = find(name);
    if (found < 0) throw argument_error(where, str("the mesh (", text(), ") has no axis '", name, "'"));
    return found;
}

std::string Mesh::names_of(AxisSet axes) const {
    std::string text;
    for (int a = 0; a < this->axes(); ++a)
        if (has_axis(axes, a)) text += (text.empty() ? "" : ".") + name(a);
    return text;
}

int64_t Mesh::position(int rank) const {
    if (ranks_.empty()) return rank >= 0 && rank < count_ ? rank : -1;
    const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
    return found == ranks_.end() ? -1 : found - ranks_.begin();
}

std::vector<int64_t> Mesh::group(int64_t position, AxisSet axes) const {
    std::vector<int64_t> all = {position};
    for (int a = 0; a < this->axes(); ++a)
        if (has_axis(axes, a)) all[0] -= coordinate(position, a) * stride(a);
    for (int a = 0; a < this->axes(); ++a) {
        if (!has_axis(axes, a)) continue;
        const std::vector<int64_t> before = std::move(all);
        all.clear();
        for (int64_t p : before)
            for (int64_t c = 0; c < size(a); ++c) all.push_back(p + c * stride(a));
    }
    return all;
}

int64_t Mesh::place_in_group(int64_t position, AxisSet axes) const {
    int64_t place = 0;
    for (int a = 0; a < this->axes(); ++a)
        if (has_axis(axes, a)) place = place * size(a) + coordinate(position, a);
    return place;
}

std::string Mesh::text() const {
    std::string text;
    for (int a = 0; a < axes(); ++a) text += str(a ? ", " : "", name(a), "=", size(a));
    return text;
}

}  // namespace lunaria::parallel
