// Messages as frames on a socket: identities, <IDS|MSG>, signature, header, parent header, metadata, content, buffers.
// Frames may come from any program that can reach the port, so that nothing in them is trusted before the signature is
// checked, and nothing is parsed before its size and nesting are.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <xeus/xauthentication.hpp>
#include <xeus/xmessage.hpp>
#include <zmq_addon.hpp>

namespace lunaria::jupyter {

// The reason why a message was refused.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Wire {
  public:
    static constexpr size_t kLargestJson = size_t{64} << 20;      // one frame of JSON
    static constexpr size_t kLargestMessage = size_t{512} << 20;  // all frames together
    static constexpr int kDeepest = 200;                          // nesting of JSON

    // An empty key turns signatures off, as the protocol has it. Throws std::runtime_error for an unknown scheme.
    Wire(const std::string& scheme, const std::string& key);

    // Throws Refused. The result has a header with msg_id and msg_type, and objects everywhere else; null for a content
    // that is not a JSON object, so that its sender can be told.
    xeus::xmessage read(const zmq::multipart_t& frames);

    // Bytes that are not UTF-8 are replaced.
    zmq::multipart_t write(xeus::xmessage message) const;
    zmq::multipart_t write(xeus::xpub_message message) const;

  private:
    void check_signature(const zmq::multipart_t& frames, size_t at);

    std::unique_ptr<xeus::xauthentication> signer_;
    mutable std::mutex signing_;  // it has one context for all threads
    bool is_signed_;
    // Signatures of the last messages: a repeated one is a replay.
    std::set<std::string> seen_;
    std::deque<std::string> seen_order_;
};

// Whether the brackets of a JSON text nest no deeper than that; the result for other texts is undefined.
bool nests_at_most(std::string_view text, int depth);

}  // namespace lunaria::jupyter
