#include "core/federated/vertical/psi.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "core/base/error.h"
#include "core/io/secure_random.h"
#include "core/threads/threads.h"

namespace lunaria::federated {

namespace {

constexpr std::string_view kPsiWhere = "psi";
constexpr std::string_view kNoPoint =
    "the other side has sent bytes that are no point of the group, or its neutral one";
constexpr int64_t kPsiPart = 32;  // points that are worth a thread

Bytes64 wide_hash(const Primitives& table, const std::string& id) {
    Bytes64 wide{};
    std::string text = "lunaria psi ristretto255 1 point 0 " + id;
    for (const size_t half : {0, 1}) {
        text[33] = half ? '1' : '0';
        const Bytes32 digest = table.sha256(text);
        std::ranges::copy(digest, wide.begin() + static_cast<ptrdiff_t>(32 * half));
    }
    return wide;
}

int64_t bin_of(const Primitives& table, const std::string& id, int64_t bins) {
    const Bytes32 digest = table.sha256("lunaria psi ristretto255 1 bin " + id);
    uint64_t number = 0;
    std::memcpy(&number, digest.data(), sizeof number);
    return static_cast<int64_t>(number % static_cast<uint64_t>(bins));
}

struct PointHash {
    size_t operator()(const Bytes32& point) const {
        size_t word = 0;
        std::memcpy(&word, point.data(), sizeof word);
        return word;
    }
};

[[noreturn]] void fail(std::string_view what) { throw state_error(kPsiWhere, what); }

}  // namespace

PrivateIntersection::PrivateIntersection(std::span<const std::string> ids, const PsiOptions& options)
    : table_(primitives(kPsiWhere)), options_(options), ids_(ids.begin(), ids.end()), is_turn_(options.is_first) {
    if (options.bins < 1 || options.bins > kMostBins)
        throw value_error(kPsiWhere, str("bins must be from 1 to ", kMostBins, ", got ", options.bins));
    if (!options.first_learns && !options.second_learns) throw value_error(kPsiWhere, "one side at least must learn");
    if (options.scalar) {
        scalar_ = *options.scalar;
    } else {
        Bytes64 wide{};
        secure_random(kPsiWhere, wide.data(), wide.size());
        scalar_ = table_.scalar(wide);
        wipe(wide.data(), wide.size());
    }
    std::vector<int64_t> bins(ids_.size());
    if (options.bins > 1)
        parallel_for(static_cast<int64_t>(ids_.size()), 1024, [&](int64_t begin, int64_t end) {
            for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
                bins[i] = bin_of(table_, ids_[i], options_.bins);
        });
    in_bin_.resize(static_cast<size_t>(options.bins));
    for (size_t i = 0; i < ids_.size(); ++i) in_bin_[static_cast<size_t>(bins[i])].push_back(static_cast<int64_t>(i));
    std::unordered_set<std::string_view> seen;
    seen.reserve(ids_.size());
    for (size_t i = 0; i < ids_.size(); ++i)
        if (!seen.insert(ids_[i]).second)
            throw value_error(kPsiWhere,
                              str("id ", i + 1, " of ", ids_.size(), " has been there before: ids must differ"))
                .hint("remove the repeated rows first");
    size_t largest = 0;
    for (const auto& bin : in_bin_) largest = std::max(largest, bin.size());
    bin_size_ = static_cast<int64_t>(largest);
    if (options.bins > 1) {
        // Beyond six standard deviations only sizes tell how full the fullest bin is.
        const double mean = static_cast<double>(ids_.size()) / static_cast<double>(options.bins);
        bin_size_ = std::max(bin_size_, static_cast<int64_t>(std::ceil(mean + 6 * std::sqrt(mean + 1))));
    }
}

PrivateIntersection::Bin PrivateIntersection::blinded(int64_t bin) const {
    const std::vector<int64_t>& ids = in_bin_[static_cast<size_t>(bin)];
    const auto count = static_cast<size_t>(bin_size_);
    std::vector<std::pair<Bytes32, int64_t>> all(count);
    std::vector<Bytes64> random(count - ids.size());
    if (!random.empty()) secure_random(kPsiWhere, random.data(), random.size() * sizeof(Bytes64));
    parallel_for(bin_size_, kPsiPart, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
            if (i >= ids.size()) {
                all[i] = {table_.hashed_point(random[i - ids.size()]), -1};
                continue;
            }
            const Bytes32 point = table_.hashed_point(wide_hash(table_, ids_[static_cast<size_t>(ids[i])]));
            all[i].second = ids[i];
            // The scalar is not 0 and the point is the neutral one with a probability of 2^-252.
            if (!table_.multiple(scalar_, point, all[i].first)) fail("an id has no point");
        }
    });
    std::ranges::sort(all);
    Bin sorted;
    for (const auto& [point, id] : all) sorted.points.push_back(point), sorted.ids.push_back(id);
    return sorted;
}

std::vector<Bytes32> PrivateIntersection::multiplied(std::span<const Bytes32> points) const {
    std::vector<Bytes32> result(points.size());
    parallel_for(static_cast<int64_t>(points.size()), kPsiPart, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
            if (!table_.multiple(scalar_, points[i], result[i])) fail(kNoPoint);
    });
    return result;
}

void PrivateIntersection::check_first(const PsiMessage& m) {
    const bool same = m.bins == options_.bins && (m.first_learns != 0) == options_.first_learns &&
                      (m.second_learns != 0) == options_.second_learns;
    const auto learns = [](bool first, bool second) {
        return first && second ? "both" : first ? "the first" : "the second";
    };
    if (!same)
        fail(str("the other side has ", m.bins, " bins and lets ", learns(m.first_learns != 0, m.second_learns != 0),
                 " learn, this one has ", options_.bins, " and lets ",
                 learns(options_.first_learns, options_.second_learns), " learn"));
    if (m.ids_in_bin < 0) fail("the other side tells a size below 0");
    other_size_ = m.ids_in_bin;
}

// Sorted, so that their order tells nothing and none is there twice.
void PrivateIntersection::check_points(const PsiMessage& m) const {
    if (m.bin != bin_) fail(str("the other side has sent bin ", m.bin, " in the place of bin ", bin_));
    if (static_cast<int64_t>(m.points.size()) != other_size_)
        fail(str("the other side has sent ", m.points.size(), " points for a bin of ", other_size_));
    for (size_t i = 1; i < m.points.size(); ++i)
        if (m.points[i] <= m.points[i - 1]) fail("the other side's points are not in order, or one is there twice");
}

// `doubled`: the own points, which the other side has multiplied.
void PrivateIntersection::match(std::span<const Bytes32> doubled) {
    if (doubled.size() != own_.points.size())
        fail(str("the other side has given back ", doubled.size(), " of ", own_.points.size(), " points"));
    const std::unordered_set<Bytes32, PointHash> theirs(theirs_.begin(), theirs_.end());
    std::atomic<bool> is_sound = true;
    parallel_for(static_cast<int64_t>(doubled.size()), kPsiPart, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
            if (!table_.is_point(doubled[i])) is_sound = false;
    });
    if (!is_sound) fail(kNoPoint);
    for (size_t i = 0; i < doubled.size(); ++i)
        if (own_.ids[i] >= 0 && theirs.contains(doubled[i])) common_.push_back(static_cast<size_t>(own_.ids[i]));
}

void PrivateIntersection::finish() {
    is_done_ = true;
    own_ = {};
    theirs_.clear();
    std::ranges::sort(common_, {}, [&](size_t i) -> const std::string& { return ids_[i]; });
}

std::optional<std::string> PrivateIntersection::next() {
    if (!is_turn_ || is_done_) return {};
    is_turn_ = false;
    PsiMessage m;
    if (!has_greeted_) {
        m.bins = options_.bins;
        m.first_learns = options_.first_learns;
        m.second_learns = options_.second_learns;
        m.ids_in_bin = bin_size_;
        has_greeted_ = true;
    }
    if (other_learns()) m.doubled = theirs_;  // of the bin before, where this side is the first
    if (bin_ == options_.bins) {
        finish();
        return text_of(m);
    }
    own_ = blinded(bin_);
    m.bin = bin_;
    m.points = own_.points;
    awaits_own_ = own_learns();
    if (!options_.is_first && !own_learns() && ++bin_ == options_.bins) finish();
    return text_of(m);
}

void PrivateIntersection::take(std::string_view message) {
    if (is_turn_ || is_done_) fail("the other side has sent a message out of turn");
    const PsiMessage m = read_psi_message(message);
    if (other_size_ < 0) check_first(m);
    if (!awaits_own_ && !m.doubled.empty()) fail("the other side tells what this one is not to learn");
    if (options_.is_first) {
        check_points(m);
        theirs_ = multiplied(m.points);
        if (own_learns()) match(m.doubled);
        is_turn_ = true;
        if (++bin_ == options_.bins && !other_learns()) finish();
        return;
    }
    if (awaits_own_) {  // what the first side tells of the bin before
        match(m.doubled);
        if (++bin_ == options_.bins) {
            if (m.bin != -1) fail("the other side has more bins");
            finish();
            return;
        }
    }
    check_points(m);
    theirs_ = multiplied(m.points);
    is_turn_ = true;
}

}  // namespace lunaria::federated
