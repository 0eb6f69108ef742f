#include "core/federated/server/secure_round.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/federated/messages.h"

namespace lunaria::federated {

namespace {

// Phases of an iteration in which clients bring something to the sum, in their order.
constexpr std::array kPhasesOfSum = {Phase::exchanging_keys, Phase::sharing_secrets, Phase::updating,
                                     Phase::signing_lists, Phase::reconstructing};

SecureServer::Phase phase_of(Phase phase) {
    switch (phase) {
        case Phase::starting:
        case Phase::exchanging_keys:
            return SecureServer::Phase::keys;
        case Phase::sharing_secrets:
            return SecureServer::Phase::shares;
        case Phase::updating:
            return SecureServer::Phase::updates;
        case Phase::signing_lists:
            return SecureServer::Phase::lists;
        default:
            return SecureServer::Phase::revealing;
    }
}

}  // namespace

SecureRound::SecureRound(Store& store, int64_t job, bool is_stable, SecureSettings settings, SigningKeys keys,
                         Phase phase)
    : iteration_(settings.iteration),
      server_(is_stable ? decltype(server_)(std::in_place_index<1>, std::move(settings), std::move(keys))
                        : decltype(server_)(std::in_place_index<0>, std::move(settings), std::move(keys))) {
    for (const Phase past : kPhasesOfSum) {
        if (past > phase) break;
        follow(past);
        if (!problem_.empty()) return;
        if (past == Phase::updating)
            for (const UpdateRow& row : store.updates(job, iteration_))
                accept(past, row.client, store.update(job, iteration_, row.client));
        else
            for (const PartRow& part : store.parts(job, iteration_, past)) accept(past, part.from, part.content);
    }
    follow(phase);
}

void SecureRound::accept(SecureServer& server, Phase phase, const std::string& client, std::string_view content) {
    switch (phase) {
        case Phase::exchanging_keys:
            server.accept_keys(client, content);
            break;
        case Phase::sharing_secrets:
            server.accept_shares(client, content);
            break;
        case Phase::updating:
            server.accept_update(client, messages::parsed<messages::UpdateModel>(content, client).payload);
            break;
        case Phase::signing_lists:
            server.accept_list_signature(client, content);
            break;
        default:
            server.accept_revealed(client, content);
            break;
    }
}

void SecureRound::accept(StableServer& server, Phase phase, const std::string& client, std::string_view content) {
    if (phase == Phase::exchanging_keys) {
        server.accept_keys(client, content);
    } else if (server.accept_update(client, messages::parsed<messages::UpdateModel>(content, client).payload)) {
        clients_.push_back(client);
        std::ranges::sort(clients_);
    }
}

void SecureRound::accept(Phase phase, const std::string& client, std::string_view content) {
    if (!problem_.empty()) throw state_error("secure aggregation", problem_);
    std::visit([&](auto& server) { accept(server, phase, client, content); }, server_);
}

void SecureRound::follow(SecureServer& server, Phase phase) {
    while (server.phase() < phase_of(phase)) server.close();
}

// The masks of the iteration after that of the keys.
void SecureRound::follow(StableServer& server, Phase phase) {
    if (phase <= Phase::exchanging_keys || is_started_) return;
    server.close_keys();
    server.start(iteration_ + 1);
    is_started_ = true;
}

void SecureRound::follow(Phase phase) {
    if (!problem_.empty()) return;
    try {
        std::visit([&](auto& server) { follow(server, phase); }, server_);
    } catch (const Error& error) {
        problem_ = error.message();
    }
}

std::string SecureRound::looked(Phase phase, std::string_view client) const {
    if (!problem_.empty()) throw state_error("secure aggregation", problem_);
    if (const auto* stable = std::get_if<StableServer>(&server_)) return stable->key_list();
    const auto& server = std::get<SecureServer>(server_);
    switch (phase) {
        case Phase::exchanging_keys:
            return server.key_list(client);
        case Phase::sharing_secrets:
            return server.share_list(client);
        case Phase::updating:
            return server.client_list();
        default:
            return server.list_signatures();
    }
}

SecureSum SecureRound::finish() {
    if (!problem_.empty()) throw state_error("secure aggregation", problem_);
    if (auto* stable = std::get_if<StableServer>(&server_)) return {stable->finish(), clients_, {}};
    return std::get<SecureServer>(server_).finish();
}

}  // namespace lunaria::federated
