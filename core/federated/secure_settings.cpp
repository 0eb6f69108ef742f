#include "core/federated/secure_settings.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace lunaria::federated {

void SecureSettings::check(std::string_view where) const {
    if (ring.bits < 8 || ring.bits > 64 || ring.bits % 8 != 0)
        throw argument_error(where, str("bits must be 8, 16, 24, ... 64, got ", ring.bits));
    constexpr size_t kMostElements = size_t{1} << 31;
    if (size < 1 || size > kMostElements) throw argument_error(where, str("size must be from 1 to 2^31, got ", size));
    if (threshold < 2)
        throw argument_error(
            where, str("threshold must be at least 2, got ", threshold, "; a single share would give the secret away"));
    if (neighbours % 2 != 0)
        throw argument_error(where, str("neighbours must be even, half of them on either side, got ", neighbours));
    if (neighbours > 0 && threshold > neighbours + 1)
        throw argument_error(where, str("threshold (", threshold,
                                        ") is more than the neighbours and the client itself (", neighbours + 1, ")"));
}

std::string SecureSettings::context() const {
    return framed({"lunaria secure sum 1", job, std::to_string(iteration), std::to_string(ring.bits),
                   std::to_string(size), std::to_string(threshold), std::to_string(neighbours),
                   is_signed ? "signed" : "unsigned"});
}

std::string framed(std::initializer_list<std::string_view> parts) {
    // As large as it will be at once: no copy of a secret is left behind.
    size_t total = 0;
    for (const std::string_view part : parts) total += 8 + part.size();
    std::string text;
    text.reserve(total);
    for (const std::string_view part : parts) {
        const auto size = static_cast<uint64_t>(part.size());
        for (int i = 0; i < 8; ++i) text += static_cast<char>(size >> (8 * i));
        text += part;
    }
    return text;
}

void refuse(std::string_view client, std::string_view what) {
    throw state_error("secure aggregation",
                      str(client.empty() ? "the server" : str("client '", client, "'"), ": ", what));
}

std::vector<std::vector<size_t>> neighbour_graph(const Primitives& table, const SecureSettings& settings,
                                                 std::span<const std::string> clients) {
    const size_t count = clients.size();
    std::vector<std::vector<size_t>> graph(count);
    if (settings.neighbours == 0 || settings.neighbours + 1 >= count) {
        for (size_t i = 0; i < count; ++i)
            for (size_t j = 0; j < count; ++j)
                if (j != i) graph[i].push_back(j);
        return graph;
    }
    const std::string context = settings.context();
    std::vector<Bytes32> hashes(count);
    for (size_t i = 0; i < count; ++i) hashes[i] = table.sha256(framed({context, "graph", clients[i]}));
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t i) { return std::pair(hashes[i], i); });
    for (size_t at = 0; at < count; ++at) {
        std::vector<size_t>& near = graph[order[at]];
        for (size_t step = 1; step <= settings.neighbours / 2; ++step) {
            near.push_back(order[(at + step) % count]);
            near.push_back(order[(at + count - step) % count]);
        }
        std::ranges::sort(near);
    }
    return graph;
}

std::string keys_text(const SecureSettings& settings, std::string_view client, std::string_view cipher_key,
                      std::string_view mask_key) {
    return framed({settings.context(), "keys", client, cipher_key, mask_key});
}

std::string update_text(const SecureSettings& settings, std::string_view client, std::string_view elements) {
    return framed({settings.context(), "update", client, elements});
}

std::string list_text(const SecureSettings& settings, std::span<const std::string> clients) {
    std::string list;
    for (const std::string& client : clients) list += framed({client});
    return framed({settings.context(), "list", list});
}

bool is_signature(const Primitives& table, const std::optional<Bytes32>& key, std::string_view text,
                  std::string_view signature) {
    const auto bytes = array_of<64>(signature);
    return key && bytes && table.verify(*key, text, *bytes);
}

std::string seed_digest(const Primitives& table, const SecureSettings& settings, std::string_view client,
                        const Secret& seed) {
    std::string text = framed({settings.context(), "seed", client, seed.view()});
    const Bytes32 digest = table.sha256(text);
    wipe(text);
    return std::string(view_of(digest));
}

namespace {

Secret derived(const Primitives& table, const Secret& from, std::string_view info) {
    Secret key;
    table.hkdf(from.view(), {}, info, key.bytes());
    return key;
}

}  // namespace

Secret share_key(const Primitives& table, const SecureSettings& settings, const SharePath& path, const Secret& agreed) {
    return derived(table, agreed,
                   framed({settings.context(), "share", path.from, path.to, view_of(path.from_mask_key),
                           view_of(path.to_mask_key)}));
}

Secret pair_seed(const Primitives& table, std::string_view context, const Secret& mask_key, const Bytes32& other) {
    Bytes32 point{};
    if (!table.multiple(mask_key, other, point))
        throw state_error("secure aggregation", "a mask key is no point of the group");
    const Secret agreed(point);
    wipe(point.data(), point.size());
    return derived(table, agreed, framed({context, "pair"}));
}

Secret own_seed(const Primitives& table, std::string_view context, const Secret& seed) {
    return derived(table, seed, framed({context, "own"}));
}

namespace {

// A block of bytes that fits into the first cache beside its elements.
constexpr size_t kBlock = 1024;

template <size_t each>
void add_stream(Keystream& stream, uint64_t mask, bool is_added, std::span<uint64_t> to) {
    std::array<uint8_t, kBlock * each> bytes;
    const uint64_t sign = is_added ? 1 : ~uint64_t{0};
    for (size_t at = 0; at < to.size(); at += kBlock) {
        const std::span<uint64_t> part = to.subspan(at, std::min(kBlock, to.size() - at));
        stream.next(std::span(bytes).first(part.size() * each));
        const uint8_t* from = bytes.data();
        for (uint64_t& element : part) {
            uint64_t drawn = 0;
            std::copy_n(from, each, reinterpret_cast<uint8_t*>(&drawn));
            element = (element + sign * drawn) & mask;
            from += each;
        }
    }
    wipe(bytes.data(), bytes.size());
}

}  // namespace

void add_mask(const Primitives& table, Ring ring, const Secret& seed, bool is_added, std::span<uint64_t> to) {
    constexpr void (*kAdd[])(Keystream&, uint64_t, bool, std::span<uint64_t>) = {
        add_stream<1>, add_stream<2>, add_stream<3>, add_stream<4>,
        add_stream<5>, add_stream<6>, add_stream<7>, add_stream<8>};
    const auto stream = table.keystream(seed);
    kAdd[ring.bytes() - 1](*stream, ring.mask(), is_added, to);
}

}  // namespace lunaria::federated
