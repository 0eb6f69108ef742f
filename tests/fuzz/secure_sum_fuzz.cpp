// Any messages to the clients and the server of a secure sum, in any order, are accepted or an Error; whatever was
// accepted, a sum that comes out is one of vectors of clients.
#include "core/base/error.h"
#include "core/federated/messages.h"
#include "core/federated/secure_client.h"
#include "core/federated/secure_server.h"
#include "core/federated/stable_masks.h"

namespace {

using namespace lunaria::federated;

SecureSettings settings() {
    SecureSettings s;
    s.job = "fuzz";
    s.ring.bits = 16;
    s.size = 2;
    s.threshold = 2;
    return s;
}

Random given_random(const std::string& name) {
    const Primitives& table = primitives("fuzz");
    const std::shared_ptr<Keystream> stream = table.keystream(Secret(table.sha256(name)));
    return [stream](std::span<uint8_t> to) { stream->next(to); };
}

template <class F>
std::string tried(F&& f) {
    try {
        return f();
    } catch (const lunaria::Error&) {
        return {};
    }
}

}  // namespace

// The first byte says at which step the rest takes the place of the honest message.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const int step = data[0] % 12;
    const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto at = [&](int number, const std::string& honest) { return number == step ? rest : honest; };
    SecureServer server(settings());
    std::vector<SecureClient> clients;
    for (const char* id : {"a", "b", "c"})
        clients.emplace_back(settings(), id, std::nullopt, SigningKeys(), given_random(id));
    SecureClient& a = clients[0];
    const auto accepted = [&](bool (SecureServer::*accept)(const std::string&, std::string_view), const std::string& id,
                              const std::string& text) {
        tried([&] { return (server.*accept)(id, text) ? std::string("new") : std::string(); });
    };
    const auto close = [&] { tried([&] { return server.close(), std::string(); }); };
    for (SecureClient& c : clients) accepted(&SecureServer::accept_keys, c.id(), at(&c == &a ? 0 : -1, c.keys()));
    close();
    for (SecureClient& c : clients) {
        const std::string keys = at(&c == &a ? 1 : -1, tried([&] { return server.key_list(c.id()); }));
        accepted(&SecureServer::accept_shares, c.id(), at(&c == &a ? 2 : -1, tried([&] { return c.shares(keys); })));
    }
    close();
    for (SecureClient& c : clients) {
        const std::string shares = at(&c == &a ? 3 : -1, tried([&] { return server.share_list(c.id()); }));
        accepted(&SecureServer::accept_update, c.id(), at(&c == &a ? 4 : -1, tried([&] {
            return c.update(shares, std::vector<uint64_t>{1, 2});
        })));
    }
    close();
    for (SecureClient& c : clients) {
        const std::string list = at(&c == &a ? 5 : -1, tried([&] { return server.client_list(); }));
        tried([&] { return c.list_signature(list); });
        accepted(&SecureServer::accept_revealed, c.id(), at(&c == &a ? 6 : -1, tried([&] { return c.reveal({}); })));
    }
    tried([&] { return server.finish(), std::string(); });
    // Messages out of turn, and of silos.
    accepted(&SecureServer::accept_list_signature, "a", rest);
    StableServer silos(settings());
    StableClient silo(settings(), "a", std::nullopt, SigningKeys(), given_random("silo"));
    tried([&] { return silos.accept_keys("a", silo.keys()), std::string(); });
    tried([&] { return silos.accept_keys("b", at(7, StableClient(settings(), "b").keys())), std::string(); });
    tried([&] { return silos.close_keys(), silos.start(1), std::string(); });
    tried([&] { return silo.take_keys(at(8, silos.key_list())), std::string(); });
    tried([&] { return silos.accept_update("a", at(9, silo.update(1, std::vector<uint64_t>{1, 2}))), std::string(); });
    tried([&] { return silos.finish(), std::string(); });
    return 0;
}
