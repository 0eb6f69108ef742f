// A client of a secure sum (Bonawitz and others 2017): its vector arrives at the server under masks, of which those
// with other clients cancel in the sum and its own is taken off with the help of its neighbours. A state machine over
// messages (messages.h): each function takes the server's answer, if any, and gives the content of the next request;
// each is called once, in this order. An error ends the client's part: it then gives nothing more, and counts as
// dropped out.
#pragma once

#include <map>

#include "core/federated/secure_settings.h"

namespace lunaria::federated {

// By what a client signs.
struct Identity {
    Secret seed;              // Ed25519's
    std::string certificate;  // of its public key, where the others need one to know it
};

class SecureClient {
  public:
    // identity, signing_keys: where settings.is_signed. random: where the secrets come from.
    SecureClient(SecureSettings settings, std::string id, std::optional<Identity> identity = {},
                 SigningKeys signing_keys = {}, Random random = system_random("secure aggregation"));

    std::string keys();                             // exchangeKeys
    std::string shares(std::string_view key_list);  // of getKeys; shareSecrets
    // share_list: of getSecrets. elements: of the ring, settings.size of them. Gives the payload of updateModel.
    std::string update(std::string_view share_list, std::span<const uint64_t> elements);
    // client_list: of getClientList. pushListSign; empty, and not sent, where the sum is unsigned.
    std::string list_signature(std::string_view client_list);
    // list_signatures: of getListSign; empty where the sum is unsigned. reconstructSecrets
    std::string reveal(std::string_view list_signatures);

    const std::string& id() const { return id_; }

  private:
    enum class Step { keys, shares, update, list_signature, reveal, done };
    struct Peer {
        Bytes32 cipher_key{}, mask_key{};
        std::string certificate;
        Secret agreed, seed_share, key_share;  // the shares: of the peer's secrets
        bool has_agreed = false, has_shared = false;
    };
    template <class F>
    std::string at(Step step, F&& f);
    void add_peer(std::string_view client, std::string_view cipher_key, std::string_view mask_key,
                  std::string_view signature, std::string_view certificate);
    void take_share(std::string_view client, std::string_view sealed);
    Secret key_with(std::string_view client, Peer& peer, bool is_sending) const;

    const SecureSettings settings_;
    const std::string context_, id_;
    const std::optional<Identity> identity_;
    const SigningKeys signing_keys_;
    const Random random_;
    const Primitives& table_;
    Step step_ = Step::keys;
    Secret cipher_secret_, mask_secret_, seed_, own_seed_share_, own_key_share_;
    Bytes32 cipher_key_{}, mask_key_{};
    std::map<std::string, Peer, std::less<>> peers_;
    std::vector<std::string> list_;  // of clients whose updates have arrived
};

}  // namespace lunaria::federated
