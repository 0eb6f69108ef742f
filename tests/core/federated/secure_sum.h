// A whole secure sum in one process, for tests: clients that drop out before a phase, given secrets.
#pragma once

#include "core/federated/messages.h"
#include "core/federated/secure_client.h"
#include "core/federated/secure_server.h"

namespace lunaria::federated {

// The bytes of a key stream by the client's name: secrets that are the same every time.
inline Random given_random(const std::string& client) {
    const Primitives& table = primitives("test");
    std::shared_ptr<Keystream> stream = table.keystream(Secret(table.sha256("secrets of " + client)));
    return [stream](std::span<uint8_t> to) { stream->next(to); };
}

inline Secret signing_seed(std::string_view client) {
    return Secret(primitives("test").sha256(str("signs: ", client)));
}
inline SigningKeys all_signing_keys() {
    return [](std::string_view client, std::string_view) -> std::optional<Bytes32> {
        return primitives("test").signing_key(signing_seed(client));
    };
}

inline SecureClient test_client(const SecureSettings& settings, const std::string& id) {
    if (!settings.is_signed) return SecureClient(settings, id, {}, {}, given_random(id));
    return SecureClient(settings, id, Identity{signing_seed(id), {}}, all_signing_keys(), given_random(id));
}
inline SecureServer test_server(const SecureSettings& settings) {
    return SecureServer(settings, settings.is_signed ? all_signing_keys() : SigningKeys());
}

struct SumCase {
    SecureSettings settings;
    std::vector<std::string> ids;
    std::vector<std::vector<uint64_t>> vectors;
    // The phase before which a client drops out: 0 keys, 1 shares, 2 update, 3 list signature, 4 revealing; 5: never.
    std::vector<int> drops;
    std::vector<std::string> updates = {};  // out: as they were sent

    SumCase(SecureSettings s, size_t clients, int drop = 5) : settings(std::move(s)), drops(clients, drop) {
        for (size_t i = 0; i < clients; ++i) {
            ids.push_back(str("client-", 100 + i));
            std::vector<uint64_t> vector(settings.size);
            for (size_t j = 0; j < vector.size(); ++j)
                vector[j] = (0x9E3779B97F4A7C15ull * (i * vector.size() + j + 1)) & settings.ring.mask();
            vectors.push_back(std::move(vector));
        }
    }

    std::vector<uint64_t> plain_sum() const {
        std::vector<uint64_t> sum(settings.size, 0);
        for (size_t i = 0; i < ids.size(); ++i)
            if (drops[i] > 2)
                for (size_t j = 0; j < sum.size(); ++j) sum[j] = (sum[j] + vectors[i][j]) & settings.ring.mask();
        return sum;
    }

    SecureSum run() {
        SecureServer server = test_server(settings);
        std::vector<SecureClient> clients;
        for (const std::string& id : ids) clients.push_back(test_client(settings, id));
        const auto each = [&](int phase, auto&& f) {
            for (size_t i = 0; i < ids.size(); ++i)
                if (drops[i] > phase) f(clients[i], i);
        };
        each(0, [&](SecureClient& c, size_t) { server.accept_keys(c.id(), c.keys()); });
        server.close();
        each(1, [&](SecureClient& c, size_t) { server.accept_shares(c.id(), c.shares(server.key_list(c.id()))); });
        server.close();
        updates.assign(ids.size(), {});
        each(2, [&](SecureClient& c, size_t i) {
            updates[i] = c.update(server.share_list(c.id()), vectors[i]);
            server.accept_update(c.id(), updates[i]);
        });
        server.close();
        const std::string list = server.client_list();
        each(3, [&](SecureClient& c, size_t) {
            const std::string signature = c.list_signature(list);
            if (settings.is_signed) server.accept_list_signature(c.id(), signature);
        });
        if (settings.is_signed) server.close();
        const std::string signatures = settings.is_signed ? server.list_signatures() : std::string();
        each(4, [&](SecureClient& c, size_t) { server.accept_revealed(c.id(), c.reveal(signatures)); });
        return server.finish();
    }
};

}  // namespace lunaria::federated
