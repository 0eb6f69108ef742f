// Secure aggregation of one iteration: the protocol's server (SecureServer), fed with what the store has of the
// iteration, so that a server that was killed, or another one, goes on where it was.
#pragma once

#include <variant>

#include "core/federated/secure_server.h"
#include "core/federated/stable_masks.h"
#include "core/federated/store.h"

namespace lunaria::federated {

class SecureRound {
  public:
    // Goes through what the store has, up to the phase.
    SecureRound(Store& store, int64_t job, bool is_stable, SecureSettings settings, SigningKeys keys, Phase phase);

    int64_t iteration() const { return iteration_; }
    // Takes what a client sent in a phase; throws an Error that says why not.
    void accept(Phase phase, const std::string& client, std::string_view content);
    // Closes phases until this one is reached.
    void follow(Phase phase);
    // What the phase before brought together, for a client; throws where the sum has failed.
    std::string looked(Phase phase, std::string_view client) const;
    // Throws a state_error where it has failed.
    SecureSum finish();
    // Why it can have no sum; empty where it can.
    const std::string& problem() const { return problem_; }

  private:
    void accept(SecureServer& server, Phase phase, const std::string& client, std::string_view content);
    void accept(StableServer& server, Phase phase, const std::string& client, std::string_view content);
    void follow(SecureServer& server, Phase phase);
    void follow(StableServer& server, Phase phase);

    const int64_t iteration_;
    std::variant<SecureServer, StableServer> server_;
    std::vector<std::string> clients_;  // of a stable sum: whose updates have arrived
    bool is_started_ = false;           // a stable sum
    std::string problem_;
};

}  // namespace lunaria::federated
