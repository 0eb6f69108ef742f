// The server of a secure sum: it passes messages between the clients (SecureClient), adds their masked vectors up, and
// takes the masks of the sum off with the shares that survivors reveal. A state machine over messages without sockets
// or clocks: the caller hands in what arrives and says when a phase is closed. All that it has is a function of what
// was accepted in each phase, in any order: a server that was killed goes on by accepting it again from its store.
//
//   keys -> close -> shares -> close -> updates -> close -> [list signatures -> close ->] revealed shares -> finish
//
// A refused message is an error that names its client, and changes nothing. A phase that is closed with fewer clients
// than the threshold ends the sum: nothing is given out then, not even a part.
#pragma once

#include <map>
#include <set>

#include "core/federated/secure_settings.h"

namespace lunaria::federated {

// What a secure sum gives.
struct SecureSum {
    std::vector<uint64_t> elements;    // of the ring
    std::vector<std::string> clients;  // whose vectors are in it, in order
    std::vector<std::string> wrong;    // clients that revealed shares that belong to no secret
};

class SecureServer {
  public:
    enum class Phase { keys, shares, updates, lists, revealing, done, failed };

    // signing_keys: where settings.is_signed.
    explicit SecureServer(SecureSettings settings, SigningKeys signing_keys = {});

    // What clients send. False: the same has been accepted before.
    bool accept_keys(const std::string& client, std::string_view message);
    bool accept_shares(const std::string& client, std::string_view message);
    bool accept_update(const std::string& client, std::string_view payload);
    bool accept_list_signature(const std::string& client, std::string_view message);
    bool accept_revealed(const std::string& client, std::string_view message);

    // Ends the phase; the next one begins. Unsigned sums have no phase of signatures.
    void close();
    // What clients are sent, from the end of the phase on that it is about.
    std::string key_list(std::string_view client) const;
    std::string share_list(std::string_view client) const;
    std::string client_list() const;
    std::string list_signatures() const;

    // Whether the shares that have arrived restore the sum.
    bool can_finish() const;
    // The sum, once.
    SecureSum finish();

    Phase phase() const { return phase_; }
    // The clients that have done what the phase asks for.
    std::vector<std::string> arrived() const;
    const SecureSettings& settings() const { return settings_; }

  private:
    struct Member {
        std::string keys;  // the message
        Bytes32 cipher_key{}, mask_key{};
        std::vector<size_t> neighbours;         // positions of members
        std::map<size_t, std::string> sealed;   // by receiver
        std::string digest;                     // of the seed
        std::string shares, update, signature;  // digests of messages, and the signature of the list
        bool has_shared = false, has_updated = false, has_revealed = false;
        std::string revealed;                // the digest of the message
        std::map<size_t, Secret> shares_of;  // revealed, by owner
    };
    bool is_repeated(const std::string& client, std::string_view what, const std::string& kept,
                     const std::string& now) const;
    void expect(Phase phase, std::string_view client) const;
    size_t position(std::string_view client) const;
    Member& member(std::string_view client) { return members_[position(client)]; }
    std::vector<size_t> holders(size_t owner) const;  // that can reveal a share of it
    [[noreturn]] void give_up(std::string_view what);
    void close_keys();
    Secret restored(size_t owner, std::set<size_t>& wrong);
    bool is_secret(size_t owner, const Secret& secret) const;
    void take_masks_off(size_t owner, const Secret& secret);

    const SecureSettings settings_;
    const std::string context_;
    const SigningKeys signing_keys_;
    const Primitives& table_;
    Phase phase_ = Phase::keys;
    std::map<std::string, Member, std::less<>> joined_;  // until the keys are closed
    std::vector<std::string> names_;                     // then these, in order
    std::vector<Member> members_;
    std::vector<Secret> places_;
    std::vector<uint64_t> sum_;
    std::map<std::vector<size_t>, Interpolation> interpolations_;  // by holders
};

std::string_view name_of(SecureServer::Phase phase);

}  // namespace lunaria::federated
