// Private set intersection by the agreement of Diffie and Hellman on ristretto255 (Meadows 1986; Huberman, Franklin and
// Hogg 1999): ids that two sides have in common, exactly.
//
// Each side hashes its ids to points of the group and multiplies them by a secret scalar of its own; multiplied by both
// scalars, equal ids are equal points and others differ. What is sent of the ids are points sorted by their bytes, so
// that their order tells nothing; a point of an id that the other side does not have cannot be told from a random one
// (the decisional Diffie-Hellman assumption, the hash as a random oracle). With several bins ids are divided by a hash,
// and every bin is filled up with random points to one size. So a side learns the size of the other set (with bins:
// rounded up), and, where it learns, which of its ids are in both. The protocol is for sides that keep to it and look
// at what they see; a side may still choose its ids as it likes, guesses included.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/federated/primitives.h"
#include "core/federated/vertical/psi_message.h"

namespace lunaria::federated {

struct PsiOptions {
    bool is_first = true;  // the side that begins
    bool first_learns = true, second_learns = true;
    int64_t bins = 1;
    std::optional<Secret> scalar;  // for tests; else one is drawn
};

// One side, without a connection.
class PrivateIntersection {
  public:
    // Throws a value_error where an id is there twice.
    PrivateIntersection(std::span<const std::string> ids, const PsiOptions& options);

    // The message to send now; nothing where one of the other side comes first, or all is done.
    std::optional<std::string> next();
    // A message of the other side. Throws for one that does not belong here.
    void take(std::string_view message);
    bool is_done() const { return is_done_; }
    // The positions of the common ids among those that were given, sorted by the bytes of the ids: the same order on
    // both sides. Empty for a side that does not learn.
    const std::vector<size_t>& common() const { return common_; }
    int64_t other_ids() const { return other_size_ * options_.bins; }

  private:
    struct Bin {
        std::vector<Bytes32> points;  // sorted
        std::vector<int64_t> ids;     // of each point; -1: of none
    };
    Bin blinded(int64_t bin) const;
    std::vector<Bytes32> multiplied(std::span<const Bytes32> points) const;
    void check_first(const PsiMessage& m);
    void check_points(const PsiMessage& m) const;
    void match(std::span<const Bytes32> doubled);
    void finish();
    bool own_learns() const { return options_.is_first ? options_.first_learns : options_.second_learns; }
    bool other_learns() const { return options_.is_first ? options_.second_learns : options_.first_learns; }

    const Primitives& table_;
    PsiOptions options_;
    Secret scalar_;
    std::vector<std::string> ids_;
    std::vector<std::vector<int64_t>> in_bin_;
    int64_t bin_size_ = 0, other_size_ = -1;
    int64_t bin_ = 0;              // the one that is compared now
    Bin own_;                      // its points
    std::vector<Bytes32> theirs_;  // the other side's points times the own scalar
    bool has_greeted_ = false, is_turn_ = false, is_done_ = false;
    bool awaits_own_ = false;  // the own points have been sent and not yet come back
    std::vector<size_t> common_;
};

}  // namespace lunaria::federated
