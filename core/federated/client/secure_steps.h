// A client's side of secure aggregation, of either kind, as contents of the job's requests. What it draws comes from a
// seed of its own, so that a client that was killed says the same again: its state is the seed and the server's
// answers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/federated/messages.h"
#include "core/federated/secure_client.h"
#include "core/federated/stable_masks.h"

namespace lunaria::federated::client {

class SecureSteps {
  public:
    // The answers of the server that it takes, in this order.
    enum class Answer { keys, secrets, clients, signatures, none };

    // `size`: numbers of an update. `identity`: where clients sign.
    SecureSteps(const messages::Plan& plan, std::string_view job, std::string_view client, int64_t iteration,
                size_t size, std::optional<Identity> identity, SigningKeys signing_keys);
    // Goes on where saved() was called. The update of that iteration was sealed before.
    static SecureSteps restored(std::string_view bytes, bool has_sealed, std::optional<Identity> identity,
                                SigningKeys signing_keys);
    std::string saved() const;

    bool is_stable() const { return stable_ != nullptr; }
    bool is_signed() const { return settings_.is_signed; }
    // Of the request that comes next.
    const std::string& content() const { return content_; }
    void take(std::string_view answer);
    // Numbers of an update.
    size_t size() const { return settings_.size - 1; }
    // The payload of updateModel: the values under masks, which count `weight` times, or once where all updates count
    // the same. Throws where they, or the weight, are larger than the sum has room for.
    std::string sealed(const std::vector<double>& values, int64_t weight);

  private:
    SecureSteps() = default;
    void begin(std::optional<Identity> identity, SigningKeys signing_keys);
    std::string seal(std::span<const uint64_t> elements);

    SecureSettings settings_;
    FixedPoint code_;
    std::string client_, seed_, content_;
    std::vector<std::string> answers_;
    std::unique_ptr<SecureClient> pairwise_;
    std::unique_ptr<StableClient> stable_;
    bool is_kind_stable_ = false, counts_alike_ = false;
};

}  // namespace lunaria::federated::client
