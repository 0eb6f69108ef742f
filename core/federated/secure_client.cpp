#include "core/federated/secure_client.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/federated/messages.h"

namespace lunaria::federated {

namespace {

constexpr std::string_view kWhere = "secure aggregation";

}  // namespace

SecureClient::SecureClient(SecureSettings settings, std::string id, std::optional<Identity> identity,
                           SigningKeys signing_keys, Random random)
    : settings_(std::move(settings)),
      context_(settings_.context()),
      id_(std::move(id)),
      identity_(std::move(identity)),
      signing_keys_(std::move(signing_keys)),
      random_(std::move(random)),
      table_(primitives(kWhere)) {
    settings_.check(kWhere);
    if (id_.empty() || id_.size() > messages::kMostName)
        throw argument_error(kWhere,
                             str("a client's id has from 1 to ", messages::kMostName, " bytes, got ", id_.size()));
    if (settings_.is_signed && (!identity_ || !signing_keys_))
        throw argument_error(kWhere, "a signed sum needs the client's signing key and the keys of the others");
}

// Runs f where it is its turn; a failure ends the client's part.
template <class F>
std::string SecureClient::at(Step step, F&& f) {
    constexpr std::string_view kNames[] = {"keys", "shares", "update", "list_signature", "reveal", "nothing"};
    if (step != step_)
        refuse(id_, str("it is the turn of ", kNames[static_cast<size_t>(step_)], ", not of ",
                        kNames[static_cast<size_t>(step)]));
    step_ = Step::done;
    std::string message = f();
    step_ = static_cast<Step>(static_cast<int>(step) + 1);
    return message;
}

std::string SecureClient::keys() {
    return at(Step::keys, [&] {
        random_(cipher_secret_.bytes());
        mask_secret_ = random_scalar(table_, random_);
        seed_ = random_scalar(table_, random_);
        cipher_key_ = table_.agreement_key(cipher_secret_);
        if (!table_.base_multiple(mask_secret_, mask_key_)) refuse(id_, "the mask key is 0");
        messages::ClientKeys keys;
        keys.cipher_key = view_of(cipher_key_);
        keys.mask_key = view_of(mask_key_);
        if (identity_) keys.certificate = identity_->certificate;
        if (settings_.is_signed)
            keys.signature =
                view_of(table_.sign(identity_->seed, keys_text(settings_, id_, keys.cipher_key, keys.mask_key)));
        return messages::written(keys);
    });
}

void SecureClient::add_peer(std::string_view client, std::string_view cipher_key, std::string_view mask_key,
                            std::string_view signature, std::string_view certificate) {
    const auto cipher = array_of<32>(cipher_key), mask = array_of<32>(mask_key);
    if (!cipher || !mask || !table_.is_point(*mask)) refuse(client, "its keys are none");
    if (settings_.is_signed && !is_signature(table_, signing_keys_(client, certificate),
                                             keys_text(settings_, client, cipher_key, mask_key), signature))
        refuse(client, "its keys are not signed by it");
    if (client == id_) {
        if (*cipher != cipher_key_ || *mask != mask_key_)
            refuse({}, str("it has other keys of client '", id_, "' than it was sent"));
        return;
    }
    for (const auto& [name, peer] : peers_)
        if (peer.cipher_key == *cipher || peer.mask_key == *mask)
            refuse(client, str("it has a key of client '", name, "'"));
    if (*cipher == cipher_key_ || *mask == mask_key_) refuse(client, str("it has a key of client '", id_, "'"));
    Peer peer;
    peer.cipher_key = *cipher;
    peer.mask_key = *mask;
    peer.certificate = certificate;
    if (!peers_.emplace(client, std::move(peer)).second)
        refuse({}, str("its list of keys has client '", client, "' twice"));
}

// What both agree on is kept from the share that is sent until the one that is received.
Secret SecureClient::key_with(std::string_view client, Peer& peer, bool is_sending) const {
    if (!peer.has_agreed && !table_.agree(cipher_secret_, peer.cipher_key, peer.agreed))
        refuse(client, "its cipher key gives secrets away");
    peer.has_agreed = true;
    const SharePath path = is_sending ? SharePath{id_, client, mask_key_, peer.mask_key}
                                      : SharePath{client, id_, peer.mask_key, mask_key_};
    return share_key(table_, settings_, path, peer.agreed);
}

std::string SecureClient::shares(std::string_view key_list) {
    return at(Step::shares, [&] {
        const auto list = messages::parsed<messages::KeyList>(key_list, "list of keys");
        for (const messages::ClientKeys& keys : list.clients)
            add_peer(keys.client, keys.cipher_key, keys.mask_key, keys.signature, keys.certificate);
        const size_t holders = peers_.size() + 1;
        if (holders < settings_.threshold)
            refuse({}, str("its list of keys has ", holders, " clients, fewer than the threshold (",
                           settings_.threshold, ")"));
        if (settings_.neighbours > 0 && peers_.size() > settings_.neighbours)
            refuse({}, str("its list of keys has ", peers_.size(), " neighbours instead of ", settings_.neighbours));
        if (settings_.is_signed && 2 * settings_.threshold <= holders)
            refuse({}, str("the threshold (", settings_.threshold,
                           ") is not more than half of those that hold shares (", holders, ")"));
        std::vector<Secret> places;
        for (const auto& [name, peer] : peers_) places.push_back(share_place(table_, name));
        places.push_back(share_place(table_, id_));
        const std::vector<Secret> of_seed = shared_secret(table_, seed_, settings_.threshold, places, random_);
        const std::vector<Secret> of_key = shared_secret(table_, mask_secret_, settings_.threshold, places, random_);
        own_seed_share_ = of_seed.back();
        own_key_share_ = of_key.back();
        messages::ShareList sealed;
        size_t i = 0;
        for (auto& [name, peer] : peers_) {
            std::string plain;
            plain.reserve(64);
            plain.append(of_seed[i].view()).append(of_key[i].view());
            // A key serves one message, so that its nonce may be 0.
            sealed.shares.push_back(
                {name, messages::Share::Secret::sealed, table_.seal(key_with(name, peer, true), Nonce{}, {}, plain)});
            wipe(plain);
            ++i;
        }
        sealed.shares.push_back({id_, messages::Share::Secret::sealed, seed_digest(table_, settings_, id_, seed_)});
        return messages::written(sealed);
    });
}

void SecureClient::take_share(std::string_view client, std::string_view sealed) {
    const auto found = peers_.find(client);
    if (found == peers_.end()) refuse({}, str("it has a share of client '", client, "', which is no neighbour"));
    Peer& peer = found->second;
    if (peer.has_shared) refuse({}, str("it has two shares of client '", client, "'"));
    std::string plain;
    const bool is_open = table_.open(key_with(client, peer, false), Nonce{}, {}, sealed, plain);
    const bool is_fine = is_open && plain.size() == 64;
    if (is_fine) {
        peer.seed_share = Secret::of(plain);
        peer.key_share = Secret::of(std::string_view(plain).substr(32));
        peer.has_shared = table_.is_scalar(peer.seed_share.bytes()) && table_.is_scalar(peer.key_share.bytes());
    }
    wipe(plain);
    if (!peer.has_shared) refuse(client, str("its share for client '", id_, "' was altered, or is of another sum"));
}

std::string SecureClient::update(std::string_view share_list, std::span<const uint64_t> elements) {
    return at(Step::update, [&] {
        if (elements.size() != settings_.size)
            throw argument_error(kWhere,
                                 str("the vector has ", elements.size(), " elements instead of ", settings_.size));
        if (std::ranges::any_of(elements, [&](uint64_t e) { return e > settings_.ring.mask(); }))
            throw argument_error(kWhere,
                                 str("the vector has elements beyond the ring of ", settings_.ring.bits, " bits"));
        const auto list = messages::parsed<messages::ShareList>(share_list, "list of shares");
        for (const messages::Share& share : list.shares) take_share(share.client, share.bytes);
        if (list.shares.size() + 1 < settings_.threshold)
            refuse({}, str("only ", list.shares.size() + 1, " clients have shared secrets; the threshold is ",
                           settings_.threshold));
        std::vector<uint64_t> masked(elements.begin(), elements.end());
        add_mask(table_, settings_.ring, own_seed(table_, context_, seed_), true, masked);
        for (const auto& [name, peer] : peers_)
            if (peer.has_shared)
                add_mask(table_, settings_.ring, pair_seed(table_, context_, mask_secret_, peer.mask_key), id_ < name,
                         masked);
        const std::string bytes = packed(settings_.ring, masked);
        const std::string text = update_text(settings_, id_, bytes);
        if (settings_.is_signed) return str(view_of(table_.sign(identity_->seed, text)), bytes);
        return str(view_of(table_.sha256(text)), bytes);
    });
}

std::string SecureClient::list_signature(std::string_view client_list) {
    return at(Step::list_signature, [&] {
        list_ = messages::parsed<messages::ClientList>(client_list, "list of clients").clients;
        if (const auto wrong = std::ranges::adjacent_find(list_, std::greater_equal<>()); wrong != list_.end())
            refuse({}, str("its list of clients is not in order after '", *wrong, "'"));
        if (!std::ranges::binary_search(list_, id_))
            refuse({}, str("its list of clients lacks '", id_, "', which sent an update"));
        size_t holders = 1;
        for (const auto& [name, peer] : peers_)
            if (std::ranges::binary_search(list_, name)) {
                if (!peer.has_shared)
                    refuse({}, str("its list has client '", name, "', whose secrets were not shared"));
                ++holders;
            }
        if (holders < settings_.threshold)
            refuse({},
                   str("its list has ", holders, " of those that hold shares; the threshold is ", settings_.threshold));
        if (settings_.neighbours == 0 && list_.size() != holders)
            refuse({}, "its list has clients whose keys were never sent");
        if (!settings_.is_signed) return std::string();
        messages::ListSignature signature;
        signature.signature = view_of(table_.sign(identity_->seed, list_text(settings_, list_)));
        return messages::written(signature);
    });
}

std::string SecureClient::reveal(std::string_view list_signatures) {
    return at(Step::reveal, [&] {
        if (settings_.is_signed) {
            const auto given = messages::parsed<messages::ListSignatures>(list_signatures, "list of signatures");
            const std::string text = list_text(settings_, list_);
            std::vector<std::string> signers = {id_};
            for (const messages::ListSignature& one : given.signatures) {
                const auto peer = peers_.find(one.client);
                if (peer == peers_.end() || !std::ranges::binary_search(list_, one.client)) continue;
                if (!is_signature(table_, signing_keys_(one.client, peer->second.certificate), text, one.signature))
                    refuse(one.client, "it has signed another list of clients");
                signers.push_back(one.client);
            }
            std::ranges::sort(signers);
            signers.erase(std::unique(signers.begin(), signers.end()), signers.end());
            if (signers.size() < settings_.threshold)
                refuse({}, str("its list of clients has ", signers.size(), " signatures; the threshold is ",
                               settings_.threshold));
        }
        // Of each client one secret: the seed of those whose update is in the sum, the key of the others. Never both.
        messages::ShareList revealed;
        const auto add = [&](const std::string& name, bool in_sum, const Secret& of_seed, const Secret& of_key) {
            revealed.shares.push_back({name,
                                       in_sum ? messages::Share::Secret::mask_seed : messages::Share::Secret::mask_key,
                                       std::string((in_sum ? of_seed : of_key).view())});
        };
        add(id_, true, own_seed_share_, own_key_share_);
        for (const auto& [name, peer] : peers_)
            if (peer.has_shared) add(name, std::ranges::binary_search(list_, name), peer.seed_share, peer.key_share);
        std::string message = messages::written(revealed);
        for (messages::Share& share : revealed.shares) wipe(share.bytes);
        peers_.clear();
        own_seed_share_ = own_key_share_ = seed_ = mask_secret_ = cipher_secret_ = Secret();
        return message;
    });
}

}  // namespace lunaria::federated
