// Messages between the clients and the server of a federated job, in the wire format of Protocol Buffers;
// messages.proto has the same as text, for clients in other languages. A request is the body of an HTTP POST to the
// address of its endpoint: an Envelope, whose content is the endpoint's message. The answer's body is a Reply, whose
// content is the endpoint's answer. What parsed() gives has passed every check that needs no knowledge of the job:
// sizes, ranges of enumerators, names, lengths of keys, tensors whose bytes fit their shapes, and the checksum, which
// tells a message that was altered on its way over plain HTTP. It throws a file_error otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/proto_fields.h"

namespace lunaria::federated::messages {

// Endpoints, in the order of an iteration.
inline constexpr std::string_view kStartFLJob = "startFLJob";
inline constexpr std::string_view kExchangeKeys = "exchangeKeys";
inline constexpr std::string_view kGetKeys = "getKeys";
inline constexpr std::string_view kShareSecrets = "shareSecrets";
inline constexpr std::string_view kGetSecrets = "getSecrets";
inline constexpr std::string_view kUpdateModel = "updateModel";
inline constexpr std::string_view kGetClientList = "getClientList";
inline constexpr std::string_view kPushListSign = "pushListSign";
inline constexpr std::string_view kGetListSign = "getListSign";
inline constexpr std::string_view kReconstructSecrets = "reconstructSecrets";
inline constexpr std::string_view kGetModel = "getModel";
inline constexpr std::string_view kPushMetrics = "pushMetrics";
// Workers of silos and of hybrid training read and write weights outside of the iteration's selection.
inline constexpr std::string_view kPullWeights = "pullWeights";
inline constexpr std::string_view kPushWeights = "pushWeights";
inline constexpr std::array kEndpoints = {kStartFLJob,  kExchangeKeys,       kGetKeys,       kShareSecrets,
                                          kGetSecrets,  kUpdateModel,        kGetClientList, kPushListSign,
                                          kGetListSign, kReconstructSecrets, kGetModel,      kPushMetrics,
                                          kPullWeights, kPushWeights};

inline constexpr size_t kMostBytes = 100 << 20;  // of a message
inline constexpr size_t kMostName = 256;         // bytes of a job's, client's or tensor's name
inline constexpr size_t kMostText = 64 << 10;    // bytes of a reason or of settings
inline constexpr size_t kMostParts = 100'000;    // tensors, clients, shares, metrics of a message
inline constexpr size_t kMostRank = 16;
inline constexpr size_t kKeyBytes = 32;        // of a public key
inline constexpr size_t kSignatureBytes = 64;  // of an Ed25519 signature
inline constexpr size_t kMostSealed = 1024;    // bytes of a share, sealed or open

enum class Code : int32_t {
    succeed = 200,
    not_ready = 201,  // ask again at next_request_time
    out_of_time = 300,
    request_error = 400,
    system_error = 500,
};

// A request of a client: its content, and what names and signs it.
struct Envelope {
    std::string job, client;
    int64_t iteration = 0;  // that the client takes part in; 0 where it does not know one
    int64_t timestamp = 0;  // ms since 1970 by the client's clock; a repeated request has a new one
    std::string content;
    std::string signature;  // Ed25519 over signed_bytes(), by the client's key; empty where the job verifies no clients
    std::string certificate;  // X.509 in PEM that names the client and its key; of jobs that verify clients, with
                              // startFLJob and outside of iterations

    uint32_t checksum = 0;  // as read; a written message has its own

    static proto::Fields<Envelope> fields();
    ProtoWriter message() const;
    void check(const ProtoReader& p) const;
    // What the signature covers: the endpoint and every field except signature and certificate.
    std::string signed_bytes(std::string_view endpoint) const;
};

struct Reply {
    Code code = Code::succeed;
    std::string reason;             // a sentence, where the code is no success
    int64_t iteration = 0;          // the server's
    int64_t next_request_time = 0;  // ms since 1970 by the server's clock, from when on the client should ask again
    int64_t timestamp = 0;          // the server's clock
    std::string content;
    uint32_t checksum = 0;  // as read; a written message has its own

    static proto::Fields<Reply> fields();
    ProtoWriter message() const;
    void check(const ProtoReader& p) const;
};

enum class ElementType : int32_t {
    float32 = 0,
    float64 = 1,
    float16 = 2,
    bfloat16 = 3,
    int32 = 4,
    int64 = 5,
    int8 = 6,
    uint8 = 7,
    boolean = 8,
    quantised = 9,  // a byte q for each element, which is low + q (high - low) / 255
};
size_t bytes_of(ElementType type);
std::string_view name_of(ElementType type);

// A named tensor, elements in row-major order, little-endian.
struct Feature {
    std::string name;
    std::vector<int64_t> shape;
    ElementType type = ElementType::float32;
    std::string data;
    float low = 0, high = 0;    // of quantised elements
    bool is_aggregated = true;  // false: belongs to the model, but not to the sum

    size_t elements() const;  // by the shape
    static proto::Fields<Feature> fields();
    void check(const ProtoReader& p) const;
};

struct FeatureMap {
    std::vector<Feature> features;
    int64_t version = 0;  // the number of iterations that made it

    static proto::Fields<FeatureMap> fields();
    void check(const ProtoReader& p) const;
};

struct Metric {
    std::string name;
    double value = 0;

    static proto::Fields<Metric> fields();
    void check(const ProtoReader& p) const;
};

// Forms of an update.
enum class Encoding : int32_t {
    plain = 0,             // features: weights after training
    masked = 1,            // payload: elements of the ring of secure aggregation
    sparse_quantised = 2,  // payload: DIFF_SPARSE_QUANT, differences from the model that was sent
    signds = 3,            // payload: SignDS's chosen indices and sign
    top_k = 4,             // payload: the largest differences and their places
    quantised = 5,         // features whose elements are quantised
};
std::string_view name_of(Encoding encoding);

// What an encryption asks of the clients.
struct Cipher {
    std::string type = "NOT_ENCRYPT";
    int64_t share_threshold = 0;  // shares that restore a secret
    int64_t neighbours = 0;       // of each client in the graph of masks; 0: all others
    int64_t ring_bits = 0, fraction_bits = 0;
    double clip = 0;                  // bound of an element of the fixed-point code
    int64_t most_weight = 1'000'000;  // of a client in a sum: the ring has room for all clients' largest weights
    bool counts_alike = false;        // every update has the weight 1, not that of its samples
    int64_t further = 0;              // elements of a sum behind those of the weights
    double dp_eps = 0, dp_delta = 0, dp_norm_clip = 0;
    double sign_k = 0, sign_eps = 0, sign_thr_ratio = 0, sign_global_lr = 0;
    int64_t sign_dim_out = 0;

    static proto::Fields<Cipher> fields();
    void check(const ProtoReader& p) const;
};

// How the clients of an iteration train.
struct Plan {
    std::string aggregation = "FedAvg";
    std::string rule = "sgd";  // the client rule
    int64_t iterations = 1;    // of the whole job
    int64_t epochs = 1, batch_size = 32;
    double learning_rate = 0.01;
    std::vector<std::string> metrics;
    std::string settings;        // more of them, as JSON
    std::vector<Feature> extra;  // tensors of the strategy, such as control variates
    Encoding upload = Encoding::plain;
    double sparse_rate = 0;  // of sparse_quantised and top_k
    int64_t seed = 0;        // of what is drawn in the iteration
    int64_t deadline = 0;    // ms since 1970 by the server's clock: updateModel closes
    Cipher cipher;

    static proto::Fields<Plan> fields();
    void check(const ProtoReader& p) const;
};

struct StartFLJob {
    int64_t samples = 0;
    std::string public_key;     // Ed25519: the client's identity; empty where the job verifies no clients
    int64_t model_version = 0;  // of the model that the client holds: it is not sent again

    static proto::Fields<StartFLJob> fields();
    void check(const ProtoReader& p) const;
};
struct StartedFLJob {
    bool is_selected = false;
    Plan plan;
    FeatureMap model;  // without features where the client holds it

    static proto::Fields<StartedFLJob> fields();
    void check(const ProtoReader& p) const;
};

// Secure aggregation, phase by phase. The cipher key is one of X25519, the mask key a point of ristretto255; a
// signature is the client's over both keys.
struct ClientKeys {
    std::string client;  // empty in exchangeKeys
    std::string cipher_key, mask_key;
    std::string signature, certificate;

    static proto::Fields<ClientKeys> fields();
    void check(const ProtoReader& p) const;
};
struct KeyList {
    std::vector<ClientKeys> clients;  // by client

    static proto::Fields<KeyList> fields();
    void check(const ProtoReader& p) const;
};
// A share for or of another client: its secret is the mask seed or the mask key. Sealed until reconstructSecrets.
struct Share {
    enum class Secret : int32_t { sealed = 0, mask_seed = 1, mask_key = 2 };
    std::string
        client;  // shareSecrets: the receiver; getSecrets: the maker; reconstructSecrets: the owner of the secret
    Secret secret = Secret::sealed;
    std::string bytes;

    static proto::Fields<Share> fields();
    void check(const ProtoReader& p) const;
};
struct ShareList {
    std::vector<Share> shares;

    static proto::Fields<ShareList> fields();
    void check(const ProtoReader& p) const;
};
// The clients whose updates have arrived, and signatures of that list.
struct ClientList {
    std::vector<std::string> clients;

    static proto::Fields<ClientList> fields();
    void check(const ProtoReader& p) const;
};
struct ListSignature {
    std::string client;  // empty in pushListSign
    std::string signature, certificate;

    static proto::Fields<ListSignature> fields();
    void check(const ProtoReader& p) const;
};
struct ListSignatures {
    std::vector<ListSignature> signatures;

    static proto::Fields<ListSignatures> fields();
    void check(const ProtoReader& p) const;
};

struct UpdateModel {
    int64_t samples = 0;
    Encoding encoding = Encoding::plain;
    std::vector<Feature> features;
    std::string payload;
    std::vector<Feature> extra;  // tensors of the client rule, such as changes of control variates
    std::vector<Metric> metrics;
    int64_t base_version = 0;  // of the model that the training began with

    static proto::Fields<UpdateModel> fields();
    void check(const ProtoReader& p) const;
};

struct PushMetrics {
    std::vector<Metric> metrics;

    static proto::Fields<PushMetrics> fields();
    void check(const ProtoReader& p) const;
};
// getModel and pullWeights have no content and are answered by a FeatureMap; pushWeights has a FeatureMap.

// `what`: a name for errors.
template <class M>
M parsed(std::string_view bytes, std::string_view what) {
    ProtoReader p(bytes, what);
    if (bytes.size() > kMostBytes) p.fail(str("it has ", bytes.size(), " bytes; at most ", kMostBytes, " are read"));
    M m = proto::read_message<M>(p);
    m.check(p);
    return m;
}
template <class M>
std::string written(const M& m) {
    return proto::message_of(m).text();
}

}  // namespace lunaria::federated::messages
