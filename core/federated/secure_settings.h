// Settings that the clients and the server of a secure sum agree on, and what both derive from them: the graph of
// neighbours, the texts that are signed, the keys of shares, the masks.
#pragma once

#include <optional>

#include "core/federated/ring.h"
#include "core/federated/shamir.h"

namespace lunaria::federated {

// The public key by which a client signs, or nothing where the client is unknown; certificate: as its keys came with
// it.
using SigningKeys = std::function<std::optional<Bytes32>(std::string_view client, std::string_view certificate)>;

struct SecureSettings {
    std::string job;
    int64_t iteration = 0;  // no two sums of a job have the same
    Ring ring;
    size_t size = 0;       // elements of a client's vector
    size_t threshold = 2;  // shares that restore a secret
    // Of each client in the graph of masks, an even number; 0: all others. With neighbours, the work of all grows with
    // the number of clients times theirs instead of its square (Bell and others 2020, for servers that follow the
    // protocol).
    size_t neighbours = 0;
    // Whether keys, updates and the list of updates are signed, which a server needs to be trusted less: it can then
    // neither invent clients nor tell them different lists. Then threshold must be more than half of those that hold
    // shares.
    bool is_signed = false;

    void check(std::string_view where) const;
    // A text that two settings have in common only if they are equal: part of all that is signed, sealed and derived.
    std::string context() const;
    // The greatest number of clients that hold shares of one.
    size_t holders(size_t clients) const { return neighbours == 0 ? clients : std::min(clients, neighbours + 1); }
};

// Texts one after the other, each with its length before it.
std::string framed(std::initializer_list<std::string_view> parts);

// An error about what a client or the server sent.
[[noreturn]] void refuse(std::string_view client, std::string_view what);

// The neighbours of each of `clients`, as their positions, in ascending order: in a circle in the order of hashes, the
// nearest half of the neighbours on either side.
std::vector<std::vector<size_t>> neighbour_graph(const Primitives& table, const SecureSettings& settings,
                                                 std::span<const std::string> clients);

// What is signed.
std::string keys_text(const SecureSettings& settings, std::string_view client, std::string_view cipher_key,
                      std::string_view mask_key);
std::string update_text(const SecureSettings& settings, std::string_view client, std::string_view elements);
std::string list_text(const SecureSettings& settings, std::span<const std::string> clients);
// Whether a signature is one of the text by the key; false for signatures of other lengths.
bool is_signature(const Primitives& table, const std::optional<Bytes32>& key, std::string_view text,
                  std::string_view signature);

// The digest by which a client is bound to the seed of its own mask.
std::string seed_digest(const Primitives& table, const SecureSettings& settings, std::string_view client,
                        const Secret& seed);
// The key of the shares that one client sends to another, of what both have agreed on. It depends on the mask keys too:
// a share opens only where both have the same ones.
struct SharePath {
    std::string_view from, to;
    Bytes32 from_mask_key{}, to_mask_key{};
};
Secret share_key(const Primitives& table, const SecureSettings& settings, const SharePath& path, const Secret& agreed);

// The seed of the mask of two clients: of one's mask key and the other's public one. The points must be valid.
Secret pair_seed(const Primitives& table, std::string_view context, const Secret& mask_key, const Bytes32& other);
Secret own_seed(const Primitives& table, std::string_view context, const Secret& seed);
// Adds the mask of a seed to the elements, or takes it away.
void add_mask(const Primitives& table, Ring ring, const Secret& seed, bool is_added, std::span<uint64_t> to);

// Bytes of a key as an array, where there are as many.
template <size_t n>
std::optional<std::array<uint8_t, n>> array_of(std::string_view bytes) {
    if (bytes.size() != n) return std::nullopt;
    std::array<uint8_t, n> result;
    std::copy(bytes.begin(), bytes.end(), result.begin());
    return result;
}

}  // namespace lunaria::federated
