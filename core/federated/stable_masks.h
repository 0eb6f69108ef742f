// Secure sums of silos: few clients, all of which take part in every sum. Their masks cancel as a whole, so that keys
// are exchanged once, and an iteration has one message of each. If one of them is missing there is no sum.
#pragma once

#include <map>

#include "core/federated/secure_client.h"

namespace lunaria::federated {

// settings.iteration is that of the exchange of keys; threshold and neighbours play no part.
class StableClient {
  public:
    StableClient(SecureSettings settings, std::string id, std::optional<Identity> identity = {},
                 SigningKeys signing_keys = {}, Random random = system_random("secure aggregation"));

    std::string keys() const;               // once, as exchangeKeys
    void take_keys(std::string_view list);  // of all clients, as of getKeys
    // The payload of updateModel. `iteration` is more than that of the last call: a mask that is used twice shows the
    // difference of what it hides.
    std::string update(int64_t iteration, std::span<const uint64_t> elements);

  private:
    SecureSettings settings_;
    std::string id_;
    std::optional<Identity> identity_;
    SigningKeys signing_keys_;
    const Primitives& table_;
    Secret mask_secret_;
    Bytes32 mask_key_{};
    std::map<std::string, Bytes32, std::less<>> others_;
    int64_t last_iteration_;
};

class StableServer {
  public:
    explicit StableServer(SecureSettings settings, SigningKeys signing_keys = {});

    // False: the same has been accepted before.
    bool accept_keys(const std::string& client, std::string_view message);
    void close_keys();
    std::string key_list() const;
    // Starts the sum of an iteration; a sum that is not finished is given up.
    void start(int64_t iteration);
    bool accept_update(const std::string& client, std::string_view payload);
    std::vector<std::string> missing() const;
    // Throws an error that names the clients that are missing.
    std::vector<uint64_t> finish();

  private:
    SecureSettings settings_;
    SigningKeys signing_keys_;
    const Primitives& table_;
    std::map<std::string, std::string, std::less<>> keys_;  // messages
    bool is_closed_ = false, is_started_ = false;
    int64_t iteration_ = 0;
    std::map<std::string, Bytes32, std::less<>> arrived_;  // digests
    std::vector<uint64_t> sum_;
};

}  // namespace lunaria::federated
