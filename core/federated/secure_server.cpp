#include "core/federated/secure_server.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/federated/messages.h"

namespace lunaria::federated {

namespace {

constexpr std::string_view kSecureServerWhere = "secure aggregation";

}  // namespace

std::string_view name_of(SecureServer::Phase phase) {
    constexpr std::string_view kNames[] = {"keys", "shares", "updates", "list signatures", "revealed shares",
                                           "done", "failed"};
    return kNames[static_cast<size_t>(phase)];
}

SecureServer::SecureServer(SecureSettings settings, SigningKeys signing_keys)
    : settings_(std::move(settings)),
      context_(settings_.context()),
      signing_keys_(std::move(signing_keys)),
      table_(primitives(kSecureServerWhere)) {
    settings_.check(kSecureServerWhere);
    if (settings_.is_signed && !signing_keys_)
        throw argument_error(kSecureServerWhere, "a signed sum needs the clients' signing keys");
}

void SecureServer::expect(Phase phase, std::string_view client) const {
    if (phase_ != phase)
        refuse(client, str("its message is one of the phase of ", name_of(phase), "; the sum is at ", name_of(phase_)));
}

bool SecureServer::is_repeated(const std::string& client, std::string_view what, const std::string& kept,
                               const std::string& now) const {
    if (kept.empty()) return false;
    if (kept != now) refuse(client, str("it has sent other ", what, " before"));
    return true;
}

size_t SecureServer::position(std::string_view client) const {
    const auto found =
        std::ranges::lower_bound(names_, client, {}, [](const std::string& name) { return std::string_view(name); });
    if (found == names_.end() || *found != client) refuse(client, "it takes no part in this sum");
    return static_cast<size_t>(found - names_.begin());
}

void SecureServer::give_up(std::string_view what) {
    phase_ = Phase::failed;
    sum_.clear();
    members_.clear();
    names_.clear();
    throw state_error(kSecureServerWhere, what);
}

bool SecureServer::accept_keys(const std::string& client, std::string_view message) {
    expect(Phase::keys, client);
    if (client.empty() || client.size() > messages::kMostName) refuse(client, "its name has no length that names have");
    if (const auto known = joined_.find(client); known != joined_.end())
        return !is_repeated(client, "keys", known->second.keys, std::string(message));
    const auto keys = messages::parsed<messages::ClientKeys>(message, str("keys of client '", client, "'"));
    Member member;
    member.keys = message;
    member.cipher_key = *array_of<32>(keys.cipher_key);
    member.mask_key = *array_of<32>(keys.mask_key);
    if (!table_.is_point(member.mask_key)) refuse(client, "its mask key is no point of the group");
    if (settings_.is_signed &&
        !is_signature(table_, signing_keys_(client, keys.certificate),
                      keys_text(settings_, client, keys.cipher_key, keys.mask_key), keys.signature))
        refuse(client, "its keys are not signed by it for this sum");
    for (const auto& [name, other] : joined_)
        if (other.cipher_key == member.cipher_key || other.mask_key == member.mask_key)
            refuse(client, str("it has a key of client '", name, "'"));
    joined_.emplace(client, std::move(member));
    return true;
}

void SecureServer::close_keys() {
    for (auto& [name, member] : joined_) {
        names_.push_back(name);
        members_.push_back(std::move(member));
        places_.push_back(share_place(table_, name));
    }
    joined_.clear();
    const std::vector<std::vector<size_t>> graph = neighbour_graph(table_, settings_, names_);
    for (size_t i = 0; i < members_.size(); ++i) members_[i].neighbours = graph[i];
    sum_.assign(settings_.size, 0);
}

void SecureServer::close() {
    const size_t count = arrived().size();
    if (phase_ == Phase::revealing || phase_ == Phase::done || phase_ == Phase::failed)
        throw state_error(kSecureServerWhere, str("there is no phase to close; the sum is at ", name_of(phase_)));
    if (count < settings_.threshold)
        give_up(str("only ", count, " clients have sent their ", name_of(phase_), "; the threshold is ",
                    settings_.threshold));
    const size_t holders = settings_.holders(count);
    if (phase_ == Phase::keys && settings_.is_signed && 2 * settings_.threshold <= holders)
        give_up(str("a signed sum needs a threshold of more than half of those that hold shares: ", settings_.threshold,
                    " of ", holders));
    if (phase_ == Phase::keys) close_keys();
    if (phase_ == Phase::updates)
        for (size_t i = 0; i < members_.size(); ++i)
            if (members_[i].has_shared && this->holders(i).size() < settings_.threshold)
                give_up(str("of the clients that hold shares of '", names_[i], "' only ", this->holders(i).size(),
                            " have sent updates; the threshold is ", settings_.threshold));
    phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
    if (phase_ == Phase::lists && !settings_.is_signed) phase_ = Phase::revealing;
}

std::vector<std::string> SecureServer::arrived() const {
    std::vector<std::string> names;
    if (phase_ == Phase::keys)
        for (const auto& [name, member] : joined_) names.push_back(name);
    const auto has_arrived = [&](const Member& m) {
        switch (phase_) {
            case Phase::shares:
                return m.has_shared;
            case Phase::updates:
                return m.has_updated;
            case Phase::lists:
                return !m.signature.empty();
            case Phase::revealing:
                return m.has_revealed;
            default:
                return false;
        }
    };
    for (size_t i = 0; i < members_.size(); ++i)
        if (has_arrived(members_[i])) names.push_back(names_[i]);
    return names;
}

std::string SecureServer::key_list(std::string_view client) const {
    if (phase_ == Phase::keys) refuse(client, "the keys are not closed");
    messages::KeyList list;
    for (const size_t i : members_[position(client)].neighbours) {
        list.clients.push_back(messages::parsed<messages::ClientKeys>(members_[i].keys, "keys"));
        list.clients.back().client = names_[i];
    }
    return messages::written(list);
}

bool SecureServer::accept_shares(const std::string& client, std::string_view message) {
    expect(Phase::shares, client);
    const size_t from = position(client);
    Member& m = members_[from];
    const std::string digest(view_of(table_.sha256(message)));
    if (is_repeated(client, "shares", m.shares, digest)) return false;
    const auto list = messages::parsed<messages::ShareList>(message, str("shares of client '", client, "'"));
    std::map<size_t, std::string> sealed;
    for (const messages::Share& share : list.shares) {
        const size_t to = position(share.client);
        if (to != from && !std::ranges::binary_search(m.neighbours, to))
            refuse(client, str("it has a share for '", share.client, "', which is no neighbour"));
        if (share.secret != messages::Share::Secret::sealed) refuse(client, "it has a share that is not sealed");
        const size_t expected = to == from ? 32 : 64 + kSealTag;
        if (share.bytes.size() != expected)
            refuse(client,
                   str("its share for '", share.client, "' has ", share.bytes.size(), " bytes instead of ", expected));
        if (!sealed.emplace(to, share.bytes).second) refuse(client, str("it has two shares for '", share.client, "'"));
    }
    if (sealed.size() != m.neighbours.size() + 1)
        refuse(client, str("it has ", sealed.size(), " shares instead of one for each of ", m.neighbours.size(),
                           " neighbours and itself"));
    m.digest = sealed.extract(from).mapped();
    m.sealed = std::move(sealed);
    m.shares = digest;
    m.has_shared = true;
    return true;
}

std::string SecureServer::share_list(std::string_view client) const {
    if (phase_ < Phase::updates) refuse(client, "the shares are not closed");
    const size_t to = position(client);
    if (!members_[to].has_shared) refuse(client, "it has shared no secrets, and takes no part any more");
    messages::ShareList list;
    for (const size_t from : members_[to].neighbours)
        if (members_[from].has_shared)
            list.shares.push_back({names_[from], messages::Share::Secret::sealed, members_[from].sealed.at(to)});
    return messages::written(list);
}

bool SecureServer::accept_update(const std::string& client, std::string_view payload) {
    expect(Phase::updates, client);
    Member& m = member(client);
    if (!m.has_shared) refuse(client, "it has shared no secrets, and takes no part any more");
    const size_t check = settings_.is_signed ? 64 : 32,
                 expected = check + settings_.size * static_cast<size_t>(settings_.ring.bytes());
    if (payload.size() != expected)
        refuse(client, str("its update has ", payload.size(), " bytes instead of ", expected));
    // The digest covers the elements alone, since signatures of the same text may differ.
    const std::string_view elements = payload.substr(check);
    const std::string text = update_text(settings_, client, elements);
    const Bytes32 digest = table_.sha256(text);
    if (settings_.is_signed) {
        // A certificate is looked up by the keys that came with it.
        const auto keys = messages::parsed<messages::ClientKeys>(m.keys, "keys");
        if (!is_signature(table_, signing_keys_(client, keys.certificate), text, payload.substr(0, check)))
            refuse(client, "its update is not signed by it for this sum");
    } else if (view_of(digest) != payload.substr(0, check)) {
        refuse(client, "its update was altered, or is of another sum or client");
    }
    if (is_repeated(client, "elements", m.update, std::string(view_of(digest)))) return false;
    m.update = view_of(digest);
    m.has_updated = true;
    add_packed(settings_.ring, elements, sum_);
    return true;
}

std::string SecureServer::client_list() const {
    if (phase_ < Phase::lists || phase_ == Phase::failed) refuse({}, "the updates are not closed");
    messages::ClientList list;
    for (size_t i = 0; i < members_.size(); ++i)
        if (members_[i].has_updated) list.clients.push_back(names_[i]);
    return messages::written(list);
}

bool SecureServer::accept_list_signature(const std::string& client, std::string_view message) {
    expect(Phase::lists, client);
    Member& m = member(client);
    if (!m.has_updated) refuse(client, "it has sent no update, and takes no part any more");
    const auto given =
        messages::parsed<messages::ListSignature>(message, str("list signature of client '", client, "'"));
    const auto keys = messages::parsed<messages::ClientKeys>(m.keys, "keys");
    const auto list = messages::parsed<messages::ClientList>(client_list(), "list of clients");
    if (!is_signature(table_, signing_keys_(client, keys.certificate), list_text(settings_, list.clients),
                      given.signature))
        refuse(client, "it has not signed the list of this sum");
    if (!m.signature.empty()) return false;
    m.signature = given.signature;
    return true;
}

std::string SecureServer::list_signatures() const {
    if (phase_ < Phase::revealing || phase_ == Phase::failed) refuse({}, "the list signatures are not closed");
    messages::ListSignatures list;
    for (size_t i = 0; i < members_.size(); ++i)
        if (!members_[i].signature.empty()) list.signatures.push_back({names_[i], members_[i].signature, {}});
    return messages::written(list);
}

std::vector<size_t> SecureServer::holders(size_t owner) const {
    std::vector<size_t> list;
    const auto holds = [&](size_t i) {
        return phase_ == Phase::revealing ? members_[i].has_revealed : members_[i].has_updated;
    };
    for (const size_t i : members_[owner].neighbours)
        if (holds(i)) list.push_back(i);
    if (holds(owner)) list.insert(std::ranges::lower_bound(list, owner), owner);
    return list;
}

bool SecureServer::accept_revealed(const std::string& client, std::string_view message) {
    expect(Phase::revealing, client);
    const size_t from = position(client);
    Member& m = members_[from];
    if (!m.has_updated) refuse(client, "it has sent no update, and takes no part any more");
    const std::string digest(view_of(table_.sha256(message)));
    if (is_repeated(client, "shares of secrets", m.revealed, digest)) return false;
    auto list = messages::parsed<messages::ShareList>(message, str("revealed shares of client '", client, "'"));
    std::map<size_t, Secret> shares;
    for (messages::Share& share : list.shares) {
        const size_t owner = position(share.client);
        const Member& of = members_[owner];
        if (!of.has_shared || (owner != from && !std::ranges::binary_search(m.neighbours, owner)))
            refuse(client, str("it holds no share of '", share.client, "'"));
        if ((share.secret == messages::Share::Secret::mask_seed) != of.has_updated ||
            share.secret == messages::Share::Secret::sealed)
            refuse(client, str("it has revealed the wrong secret of '", share.client, "'"));
        if (share.bytes.size() != 32)
            refuse(client, str("its share of '", share.client, "' has ", share.bytes.size(), " bytes instead of 32"));
        if (!shares.emplace(owner, Secret::of(share.bytes)).second)
            refuse(client, str("it has two shares of '", share.client, "'"));
        wipe(share.bytes);
    }
    size_t expected = 1;
    for (const size_t owner : m.neighbours) expected += members_[owner].has_shared;
    if (shares.size() != expected)
        refuse(client, str("it has revealed ", shares.size(), " shares instead of ", expected));
    for (auto& [owner, share] : shares)
        if (!table_.is_scalar(share.bytes())) refuse(client, str("its share of '", names_[owner], "' is no scalar"));
    m.shares_of = std::move(shares);
    m.revealed = digest;
    m.has_revealed = true;
    return true;
}

bool SecureServer::can_finish() const {
    if (phase_ != Phase::revealing) return false;
    for (size_t i = 0; i < members_.size(); ++i)
        if (members_[i].has_shared && holders(i).size() < settings_.threshold) return false;
    return true;
}

// Whether it is what its owner was bound to before: the seed by its digest, the key by the public one.
bool SecureServer::is_secret(size_t owner, const Secret& secret) const {
    const Member& m = members_[owner];
    if (m.has_updated) return seed_digest(table_, settings_, names_[owner], secret) == m.digest;
    Bytes32 open{};
    return table_.base_multiple(secret, open) && open == m.mask_key;
}

// By the first holders that there are; where these do not give the secret, without one of them, which is then left out
// for all that follows.
Secret SecureServer::restored(size_t owner, std::set<size_t>& wrong) {
    std::vector<size_t> able;
    for (const size_t i : holders(owner))
        if (!wrong.contains(i)) able.push_back(i);
    const size_t needed = settings_.threshold;
    const auto tried = [&](std::span<const size_t> chosen, Secret& secret) {
        const std::vector<size_t> key(chosen.begin(), chosen.end());
        auto known = interpolations_.find(key);
        if (known == interpolations_.end()) {
            std::vector<Secret> places;
            for (const size_t i : chosen) places.push_back(places_[i]);
            known = interpolations_.emplace(key, Interpolation(table_, places)).first;
        }
        std::vector<Secret> shares;
        for (const size_t i : chosen) shares.push_back(members_[i].shares_of.at(owner));
        secret = known->second.at_zero(shares);
        return is_secret(owner, secret);
    };
    Secret secret;
    if (able.size() >= needed && tried(std::span(able).first(needed), secret)) return secret;
    for (size_t out = 0; out < needed && able.size() > needed; ++out) {
        std::vector<size_t> others = able;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
        if (!tried(std::span(others).first(needed), secret)) continue;
        wrong.insert(able[out]);
        return secret;
    }
    give_up(str("the shares that clients revealed of '", names_[owner], "' do not give its secret"));
}

// The masks of a client in the sum: its own, or, where it dropped out, those that its neighbours share with it.
void SecureServer::take_masks_off(size_t owner, const Secret& secret) {
    if (members_[owner].has_updated)
        return add_mask(table_, settings_.ring, own_seed(table_, context_, secret), false, sum_);
    for (const size_t i : members_[owner].neighbours)
        if (members_[i].has_updated)
            add_mask(table_, settings_.ring, pair_seed(table_, context_, secret, members_[i].mask_key),
                     !(names_[i] < names_[owner]), sum_);
}

SecureSum SecureServer::finish() {
    if (phase_ != Phase::revealing)
        throw state_error(kSecureServerWhere, str("the sum is at ", name_of(phase_), ", not at revealed shares"));
    const size_t count = arrived().size();
    if (count < settings_.threshold)
        give_up(str("only ", count, " clients have revealed shares; the threshold is ", settings_.threshold));
    std::set<size_t> wrong;
    std::vector<std::pair<size_t, Secret>> secrets;
    for (size_t i = 0; i < members_.size(); ++i) {
        if (!members_[i].has_shared) continue;
        if (holders(i).size() < settings_.threshold)
            give_up(str("of the shares of '", names_[i], "' only ", holders(i).size(),
                        " were revealed; the threshold is ", settings_.threshold));
        secrets.emplace_back(i, restored(i, wrong));
    }
    for (const auto& [owner, secret] : secrets) take_masks_off(owner, secret);
    SecureSum result;
    result.elements = std::move(sum_);
    for (size_t i = 0; i < members_.size(); ++i)
        if (members_[i].has_updated) result.clients.push_back(names_[i]);
    for (const size_t i : wrong) result.wrong.push_back(names_[i]);
    phase_ = Phase::done;
    for (Member& m : members_) m.shares_of.clear();
    interpolations_.clear();
    return result;
}

}  // namespace lunaria::federated
