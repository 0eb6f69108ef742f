// The state from which a client goes on after a crash, so that its job ends as if there had been none: its name, how
// far the iteration is, the update that is on its way. One file, replaced whole; others cannot read it, since it has
// keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lunaria::federated::client {

struct ClientState {
    std::string job, client;
    std::string identity;      // the seed of the client's signatures, where it made one itself
    int64_t timestamp = 0;     // the last one sent
    int64_t iteration = 0;     // of what follows
    std::string update;        // the content of updateModel; empty: not trained yet
    std::string secrets;       // of secure aggregation
    int64_t phase = 0;         // how far the iteration is
    int64_t base_version = 0;  // of the model that the update begins with
    // What the client rule keeps between iterations, and what compression left out: before this iteration's update, and
    // with it, which counts once the server has taken the update.
    std::string rule, next_rule, residual, next_residual;
};

class StateFile {
  public:
    // Empty path: nothing is kept.
    explicit StateFile(std::string path) : path_(std::move(path)) {}

    // Nothing where there is no file; throws where it is damaged or of another job or client.
    std::optional<ClientState> load(const std::string& job, const std::string& client) const;
    void save(const ClientState& state) const;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace lunaria::federated::client
