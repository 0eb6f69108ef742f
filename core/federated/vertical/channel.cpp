#include "core/federated/vertical/channel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/io/protobuf.h"
#include "core/io/socket.h"

namespace lunaria::federated {

namespace {

constexpr std::string_view kWhere = "channel";
constexpr std::string_view kMagic = "lunaria-party";
constexpr int64_t kVersion = 1;
constexpr size_t kLongestGreeting = 1024, kLongestName = 128;
constexpr double kGreetingSeconds = 5;  // for strangers

using Clock = std::chrono::steady_clock;

double seconds_until(Clock::time_point end) {
    return std::max(0.0, std::chrono::duration<double>(end - Clock::now()).count());
}
Clock::time_point in_seconds(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

struct Greeting {
    int64_t version = 0;
    std::string name;
    Bytes32 key{};
};

std::string text_of(const Greeting& g) {
    ProtoWriter w;
    w.bytes(1, kMagic).integer(2, g.version).bytes(3, g.name).bytes(4, view_of(g.key));
    return w.text();
}

Greeting greeting_in(std::string_view bytes) {
    Greeting g;
    bool is_party = false, has_key = false;
    for (ProtoReader p(bytes, "the greeting of a party"); p.next();) {
        if (p.field() == 1) is_party = p.bytes() == kMagic;
        if (p.field() == 2) g.version = p.integer();
        if (p.field() == 3) g.name = p.text();
        if (p.field() == 4 && p.bytes().size() == g.key.size()) {
            has_key = true;
            std::copy_n(p.bytes().begin(), g.key.size(), g.key.begin());
        }
    }
    if (!is_party) throw state_error(kWhere, "what is connected is no party of a federated training");
    if (g.version != kVersion)
        throw state_error(
            kWhere, str("the other side speaks version ", g.version, " of the protocol, this one version ", kVersion))
            .hint("use the same version of the program on both sides");
    if (!has_key || g.name.empty() || g.name.size() > kLongestName)
        throw state_error(kWhere, "the greeting of the other side is incomplete");
    return g;
}

// What both sides have derived: two proofs and two keys.
struct Derived {
    std::array<uint8_t, 128> bytes{};
    ~Derived() { wipe(bytes.data(), bytes.size()); }
    std::string_view proof(bool of_caller) const {
        return {reinterpret_cast<const char*>(bytes.data()) + (of_caller ? 0 : 32), 32};
    }
    std::span<const uint8_t> key(bool of_caller) const { return std::span(bytes).subspan(of_caller ? 64 : 96, 32); }
};

void derive(const Primitives& table, const std::string& key, const Secret& own, const Bytes32& other,
            std::string_view said, Derived& derived) {
    Secret shared;
    if (!table.agree(own, other, shared))
        throw state_error(kWhere, "the other side's key of the agreement is not sound");
    std::string secret = str(key.size(), ":", key);
    secret += shared.view();
    const Bytes32 salt = table.sha256(said);
    table.hkdf(secret, view_of(salt), "lunaria party channel 1", derived.bytes);
    wipe(secret);
}

Nonce nonce_of(uint64_t number) {
    Nonce nonce{};
    for (size_t i = 0; i < sizeof number; ++i) nonce[i] = static_cast<uint8_t>(number >> (8 * i));
    return nonce;
}

Greeting own_greeting(const Primitives& table, const Secret& own, const ChannelOptions& options) {
    return {kVersion, options.own_name, table.agreement_key(own)};
}

}  // namespace

Channel::Channel(Descriptor& socket, std::string peer, const ChannelOptions& options)
    : socket_(socket.release()), peer_(std::move(peer)), seconds_(options.seconds), most_(options.most) {}

void Channel::set_keys(std::span<const uint8_t> own, std::span<const uint8_t> other) {
    std::ranges::copy(own, own_.bytes().begin());
    std::ranges::copy(other, other_.bytes().begin());
}

void Channel::fail(std::string_view what) const {
    throw state_error(kWhere, str("the channel to '", peer_, "': ", what));
}

std::unique_ptr<Channel> Channel::greet(Descriptor& socket, const std::string& peer, const ChannelOptions& options) {
    const Primitives& table = primitives(kWhere);
    const Secret own = Secret::random(kWhere);
    const std::string first = text_of(own_greeting(table, own, options));
    send_text(socket, first, options.seconds);
    const std::string second = receive_text(socket, kLongestGreeting, options.seconds);
    const Greeting other = greeting_in(second);
    if (other.name != peer)
        throw state_error(kWhere, str("the party at that address is '", other.name, "', not '", peer, "'"));
    const std::string proof = receive_text(socket, kLongestGreeting, options.seconds);
    if (proof.empty()) throw state_error(kWhere, str("'", peer, "' has no key for a party '", options.own_name, "'"));
    Derived derived;
    derive(table, options.key_of(peer), own, other.key, str(first.size(), ":", first, second), derived);
    if (!same_secret(proof, derived.proof(false)))
        throw state_error(kWhere, str("'", peer, "' does not have the same key"))
            .hint("give both parties the same text as key; it is never sent");
    send_text(socket, derived.proof(true), options.seconds);
    std::unique_ptr<Channel> channel(new Channel(socket, peer, options));
    channel->set_keys(derived.key(true), derived.key(false));
    return channel;
}

std::unique_ptr<Channel> Channel::answer(Descriptor& socket, const ChannelOptions& options) {
    const Primitives& table = primitives(kWhere);
    const double patience = std::min(options.seconds, kGreetingSeconds);
    const std::string first = receive_text(socket, kLongestGreeting, patience);
    const Secret own = Secret::random(kWhere);
    const std::string second = text_of(own_greeting(table, own, options));
    send_text(socket, second, patience);
    const Greeting other = greeting_in(first);
    const std::string key = options.key_of(other.name);
    if (key.empty()) {
        send_text(socket, "", patience);
        throw state_error(kWhere, str("a party '", other.name, "' has called, for which there is no key"));
    }
    Derived derived;
    derive(table, key, own, other.key, str(first.size(), ":", first, second), derived);
    send_text(socket, derived.proof(false), patience);
    std::string proof;
    try {
        proof = receive_text(socket, kLongestGreeting, patience);
    } catch (const Error& e) {
        throw state_error(kWhere,
                          str("'", other.name, "' has called and not shown that it has the key: ", e.message()));
    }
    if (!same_secret(proof, derived.proof(true)))
        throw state_error(kWhere, str("'", other.name, "' has called and does not have the same key"));
    std::unique_ptr<Channel> channel(new Channel(socket, other.name, options));
    channel->set_keys(derived.key(false), derived.key(true));
    return channel;
}

void Channel::send(std::string_view message) {
    if (message.size() > most_)
        fail(str("a message of ", message.size(), " bytes is beyond the limit of ", most_, " bytes"));
    const std::string sealed = primitives(kWhere).seal(own_, nonce_of(sent_++), {}, message);
    try {
        send_text(socket_, sealed, seconds_);
    } catch (const Error& e) {
        if (e.kind() == ErrorKind::interrupt) throw;
        fail(str("a message could not be sent: ", e.message()));
    }
}

std::string Channel::receive() {
    if (!is_readable(socket_, seconds_)) fail(str("nothing has come for ", seconds_, " seconds"));
    std::string sealed;
    try {
        sealed = receive_text(socket_, most_ + kSealTag, seconds_);
    } catch (const Error& e) {
        if (e.kind() == ErrorKind::interrupt) throw;
        fail(str("no whole message has come: ", e.message()));
    }
    std::string message;
    if (!primitives(kWhere).open(other_, nonce_of(received_++), {}, sealed, message))
        fail("a message was changed, repeated or left out on its way");
    return message;
}

std::unique_ptr<Channel> accept_party(const Descriptor& listener, const ChannelOptions& options) {
    const auto end = in_seconds(options.seconds);
    std::string last;
    constexpr int kLook = 50;
    do {
        poll_interrupt();
        Descriptor socket(accept_from(listener, kLook).release());
        if (!socket) continue;
        try {
            return Channel::answer(socket, options);
        } catch (const Error& e) {
            if (e.kind() == ErrorKind::interrupt) throw;
            last = e.message();
        }
    } while (seconds_until(end) > 0);
    throw state_error(kWhere, str("no party has come within ", options.seconds, " seconds",
                                  last.empty() ? "" : "; of the last that tried: ", last));
}

std::unique_ptr<Channel> call_party(const std::string& host, int port, const std::string& peer,
                                    const ChannelOptions& options) {
    const auto end = in_seconds(options.seconds);
    do {
        poll_interrupt();
        Descriptor socket(connect_to(host, port).release());
        if (socket) return Channel::greet(socket, peer, options);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    } while (seconds_until(end) > 0);
    throw state_error(kWhere, str("nothing listens at ", host, ":", port, " within ", options.seconds, " seconds"))
        .hint(str("start the party '", peer, "' too; its address must be the one that this party has for it"));
}

}  // namespace lunaria::federated
