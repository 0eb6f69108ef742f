// A connection between two parties by TCP, of which others learn sizes and times alone.
//
// Both sides know a key beforehand. They agree on a fresh secret by X25519 and derive from it, the key and all that was
// said so far (HKDF) what proves to each side that the other has the key, and one key for each direction; messages are
// sealed by ChaCha20-Poly1305 with their number. The key alone, when it becomes known later, does not open what was
// sent before.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/federated/primitives.h"
#include "core/io/descriptor.h"

namespace lunaria::federated {

struct ChannelOptions {
    std::string own_name;
    double seconds = 60;            // for each send, each receive and for the greeting
    size_t most = size_t{1} << 28;  // bytes of a message
    // The key for the party of that name; empty: it is not known. Keys have at least kLeastKey bytes.
    std::function<std::string(const std::string& peer)> key_of;
};
inline constexpr size_t kLeastKey = 16;

// What goes over a socket between two parties. For one thread at a time.
class Channel {
  public:
    // The first words with the side that has accepted the connection, which must be the party `peer`, and with the side
    // that has made it. Throws a state_error that says what does not fit.
    static std::unique_ptr<Channel> greet(Descriptor& socket, const std::string& peer, const ChannelOptions& options);
    static std::unique_ptr<Channel> answer(Descriptor& socket, const ChannelOptions& options);

    const std::string& peer() const { return peer_; }
    void send(std::string_view message);
    std::string receive();

  private:
    Channel(Descriptor& socket, std::string peer, const ChannelOptions& options);
    void set_keys(std::span<const uint8_t> own, std::span<const uint8_t> other);
    [[noreturn]] void fail(std::string_view what) const;

    Descriptor socket_;
    std::string peer_;
    double seconds_;
    size_t most_;
    Secret own_, other_;
    uint64_t sent_ = 0, received_ = 0;
};

// Waits for a party that has the key. Connections of others are dropped; the error of the last is told where none comes
// in time.
std::unique_ptr<Channel> accept_party(const Descriptor& listener, const ChannelOptions& options);
// Tries until the party answers or the time is over.
std::unique_ptr<Channel> call_party(const std::string& host, int port, const std::string& peer,
                                    const ChannelOptions& options);

}  // namespace lunaria::federated
