#include "core/federated/stable_masks.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/federated/messages.h"

namespace lunaria::federated {

namespace {

constexpr std::string_view kWhere = "secure aggregation";

SecureSettings of_iteration(SecureSettings settings, int64_t iteration) {
    settings.job = framed({"stable", settings.job, std::to_string(settings.iteration)});
    settings.iteration = iteration;
    return settings;
}

}  // namespace

StableClient::StableClient(SecureSettings settings, std::string id, std::optional<Identity> identity,
                           SigningKeys signing_keys, Random random)
    : settings_(std::move(settings)),
      id_(std::move(id)),
      identity_(std::move(identity)),
      signing_keys_(std::move(signing_keys)),
      table_(primitives(kWhere)),
      last_iteration_(settings_.iteration) {
    settings_.check(kWhere);
    if (id_.empty() || id_.size() > messages::kMostName)
        throw argument_error(kWhere,
                             str("a client's id has from 1 to ", messages::kMostName, " bytes, got ", id_.size()));
    if (settings_.is_signed && (!identity_ || !signing_keys_))
        throw argument_error(kWhere, "a signed sum needs the client's signing key and the keys of the others");
    mask_secret_ = random_scalar(table_, random);
    if (!table_.base_multiple(mask_secret_, mask_key_)) refuse(id_, "the mask key is 0");
}

std::string StableClient::keys() const {
    messages::ClientKeys keys;
    // Nothing is sealed: the other key is the same one.
    keys.cipher_key = keys.mask_key = view_of(mask_key_);
    if (identity_) keys.certificate = identity_->certificate;
    if (settings_.is_signed)
        keys.signature =
            view_of(table_.sign(identity_->seed, keys_text(settings_, id_, keys.cipher_key, keys.mask_key)));
    return messages::written(keys);
}

void StableClient::take_keys(std::string_view list) {
    if (!others_.empty()) refuse({}, "the keys were sent before");
    std::map<std::string, Bytes32, std::less<>> others;
    bool has_own = false;
    for (const messages::ClientKeys& keys : messages::parsed<messages::KeyList>(list, "list of keys").clients) {
        const auto key = array_of<32>(keys.mask_key);
        if (!key || !table_.is_point(*key)) refuse(keys.client, "its mask key is no point of the group");
        if (settings_.is_signed &&
            !is_signature(table_, signing_keys_(keys.client, keys.certificate),
                          keys_text(settings_, keys.client, keys.cipher_key, keys.mask_key), keys.signature))
            refuse(keys.client, "its keys are not signed by it");
        if (keys.client == id_) {
            if (*key != mask_key_) refuse({}, str("it has another key of client '", id_, "' than it was sent"));
            has_own = true;
        } else if (*key == mask_key_ || !others.emplace(keys.client, *key).second) {
            refuse({}, str("its list of keys has a key or a client twice: '", keys.client, "'"));
        }
    }
    if (!has_own || others.empty()) refuse({}, str("its list of keys lacks client '", id_, "', or all others"));
    others_ = std::move(others);
}

std::string StableClient::update(int64_t iteration, std::span<const uint64_t> elements) {
    if (others_.empty()) refuse(id_, "the keys of the others come first");
    if (iteration <= last_iteration_)
        refuse(id_, str("iteration ", iteration, " is not after ", last_iteration_,
                        "; a mask that is used twice shows what it hides"));
    if (elements.size() != settings_.size)
        throw argument_error(kWhere, str("the vector has ", elements.size(), " elements instead of ", settings_.size));
    if (std::ranges::any_of(elements, [&](uint64_t e) { return e > settings_.ring.mask(); }))
        throw argument_error(kWhere, str("the vector has elements beyond the ring of ", settings_.ring.bits, " bits"));
    last_iteration_ = iteration;
    const SecureSettings now = of_iteration(settings_, iteration);
    const std::string context = now.context();
    std::vector<uint64_t> masked(elements.begin(), elements.end());
    for (const auto& [name, key] : others_)
        add_mask(table_, settings_.ring, pair_seed(table_, context, mask_secret_, key), id_ < name, masked);
    const std::string bytes = packed(settings_.ring, masked);
    const std::string text = update_text(now, id_, bytes);
    if (settings_.is_signed) return str(view_of(table_.sign(identity_->seed, text)), bytes);
    return str(view_of(table_.sha256(text)), bytes);
}

StableServer::StableServer(SecureSettings settings, SigningKeys signing_keys)
    : settings_(std::move(settings)), signing_keys_(std::move(signing_keys)), table_(primitives(kWhere)) {
    settings_.check(kWhere);
    if (settings_.is_signed && !signing_keys_)
        throw argument_error(kWhere, "a signed sum needs the clients' signing keys");
}

bool StableServer::accept_keys(const std::string& client, std::string_view message) {
    if (is_closed_) refuse(client, "the keys are closed");
    if (client.empty() || client.size() > messages::kMostName) refuse(client, "its name has no length that names have");
    if (const auto known = keys_.find(client); known != keys_.end()) {
        if (known->second != message) refuse(client, "it has sent other keys before");
        return false;
    }
    const auto keys = messages::parsed<messages::ClientKeys>(message, str("keys of client '", client, "'"));
    if (!table_.is_point(*array_of<32>(keys.mask_key))) refuse(client, "its mask key is no point of the group");
    if (settings_.is_signed &&
        !is_signature(table_, signing_keys_(client, keys.certificate),
                      keys_text(settings_, client, keys.cipher_key, keys.mask_key), keys.signature))
        refuse(client, "its keys are not signed by it for this sum");
    keys_.emplace(client, message);
    return true;
}

void StableServer::close_keys() {
    if (keys_.size() < 2) refuse({}, str("a secure sum has at least 2 clients, got ", keys_.size()));
    is_closed_ = true;
}

std::string StableServer::key_list() const {
    if (!is_closed_) refuse({}, "the keys are not closed");
    messages::KeyList list;
    for (const auto& [name, keys] : keys_) {
        list.clients.push_back(messages::parsed<messages::ClientKeys>(keys, "keys"));
        list.clients.back().client = name;
    }
    return messages::written(list);
}

void StableServer::start(int64_t iteration) {
    if (!is_closed_) refuse({}, "the keys are not closed");
    if (iteration <= settings_.iteration)
        refuse({}, str("iteration ", iteration, " is not after ", settings_.iteration));
    arrived_.clear();
    sum_.assign(settings_.size, 0);
    iteration_ = iteration;
    is_started_ = true;
}

bool StableServer::accept_update(const std::string& client, std::string_view payload) {
    const auto member = keys_.find(client);
    if (!is_started_ || member == keys_.end())
        refuse(client, is_started_ ? "it takes no part in this sum" : "no sum was started");
    const size_t check = settings_.is_signed ? 64 : 32,
                 expected = check + settings_.size * static_cast<size_t>(settings_.ring.bytes());
    if (payload.size() != expected)
        refuse(client, str("its update has ", payload.size(), " bytes instead of ", expected));
    const std::string_view elements = payload.substr(check);
    const std::string text = update_text(of_iteration(settings_, iteration_), client, elements);
    const Bytes32 digest = table_.sha256(text);
    if (settings_.is_signed) {
        const auto keys = messages::parsed<messages::ClientKeys>(member->second, "keys");
        if (!is_signature(table_, signing_keys_(client, keys.certificate), text, payload.substr(0, check)))
            refuse(client, "its update is not signed by it for this sum");
    } else if (view_of(digest) != payload.substr(0, check)) {
        refuse(client, "its update was altered, or is of another sum or client");
    }
    if (const auto known = arrived_.find(client); known != arrived_.end()) {
        if (known->second != digest) refuse(client, "it has sent other elements before");
        return false;
    }
    arrived_.emplace(client, digest);
    add_packed(settings_.ring, elements, sum_);
    return true;
}

std::vector<std::string> StableServer::missing() const {
    std::vector<std::string> names;
    for (const auto& [name, keys] : keys_)
        if (!arrived_.contains(name)) names.push_back(name);
    return names;
}

std::vector<uint64_t> StableServer::finish() {
    if (!is_started_) refuse({}, "no sum was started");
    is_started_ = false;
    const std::vector<std::string> absent = missing();
    if (absent.empty()) return std::move(sum_);
    sum_.clear();
    std::string list;
    for (const std::string& name : absent) list += str(list.empty() ? "'" : ", '", name, "'");
    throw state_error(kWhere, str("stable masks need all clients, and ", absent.size(), " are missing: ", list))
        .hint("clients that may drop out need PW_ENCRYPT");
}

}  // namespace lunaria::federated
