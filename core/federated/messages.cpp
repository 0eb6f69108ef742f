#include "core/federated/messages.h"

#include <cmath>

#include "core/io/crc32c.h"

namespace lunaria::federated::messages {

namespace {

using proto::field;
using proto::Field;
using proto::filled;

// Bytes, written only if there are some.
template <auto member, class M>
constexpr Field<M> blob_of(uint32_t number, std::string M::*) {
    return {number, [](M& m, const ProtoReader& p) { m.*member = p.bytes(); },
            [](const M& m, uint32_t n, ProtoWriter& w) {
                if (!(m.*member).empty()) w.bytes(n, m.*member);
            }};
}
template <auto member>
constexpr auto blob(uint32_t number) {
    return blob_of<member>(number, member);
}

// A repeated field, of which a few bytes each make an object of hundreds: bounded while it is read.
template <auto member, class M, class T>
constexpr Field<M> list_of(uint32_t number, std::vector<T> M::*) {
    return {number,
            [](M& m, const ProtoReader& p) {
                if ((m.*member).size() == kMostParts) p.fail(str("field ", p.field(), " is repeated too often"));
                proto::read_value((m.*member).emplace_back(), p);
            },
            [](const M& m, uint32_t n, ProtoWriter& w) { proto::write_value(m.*member, n, w); }};
}
template <auto member>
constexpr auto list(uint32_t number) {
    return list_of<member>(number, member);
}

constexpr Field<Feature> shape_field(uint32_t number) {
    return {number,
            [](Feature& m, const ProtoReader& p) {
                if (p.has_bytes() && p.bytes().size() > kMostRank * 10) p.fail("a shape has too many axes");
                p.integers(m.shape);
                if (m.shape.size() > kMostRank) p.fail("a shape has too many axes");
            },
            [](const Feature& m, uint32_t n, ProtoWriter& w) {
                for (const int64_t size : m.shape) w.integer(n, size);
            }};
}

void name(const ProtoReader& p, std::string_view what, std::string_view text, bool may_be_empty = false) {
    if (text.empty() && !may_be_empty) p.fail(str(what, " is empty"));
    if (text.size() > kMostName) p.fail(str(what, " has ", text.size(), " bytes, more than ", kMostName));
    for (const char c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) p.fail(str(what, " has a control character"));
}
void short_text(const ProtoReader& p, std::string_view what, std::string_view text) {
    if (text.size() > kMostText) p.fail(str(what, " has ", text.size(), " bytes, more than ", kMostText));
}
void key(const ProtoReader& p, std::string_view what, std::string_view bytes, size_t size, bool may_be_empty) {
    if (bytes.size() != size && !(may_be_empty && bytes.empty()))
        p.fail(str(what, " has ", bytes.size(), " bytes, not ", size));
}
void not_negative(const ProtoReader& p, std::string_view what, int64_t value) {
    if (value < 0) p.fail(str(what, " is ", value, ", less than 0"));
}
void finite(const ProtoReader& p, std::string_view what, double value) {
    if (!std::isfinite(value)) p.fail(str(what, " is ", value));
}
// The member is read, and written by message().
template <class M>
constexpr Field<M> checksum_field(uint32_t number) {
    return {number, [](M& m, const ProtoReader& p) { m.checksum = static_cast<uint32_t>(p.integer()); }};
}
template <class M>
ProtoWriter with_checksum(const M& m, uint32_t number, uint32_t checksum) {
    ProtoWriter w = proto::written(m, M::fields());
    w.integer(number, checksum);
    return w;
}
void whole(const ProtoReader& p, uint32_t told, uint32_t counted) {
    if (told != counted) p.fail("it is not as it was sent: its checksum is another one");
}
uint32_t checksum_of(const Envelope& m) {
    const std::string head = str(m.job, "\n", m.client, "\n", m.iteration, "\n", m.timestamp, "\n");
    return crc32c(m.certificate, crc32c(m.signature, crc32c(m.content, crc32c(head))));
}
uint32_t checksum_of(const Reply& m) {
    const std::string head = str(static_cast<int32_t>(m.code), "\n", m.reason, "\n", m.iteration, "\n",
                                 m.next_request_time, "\n", m.timestamp, "\n");
    return crc32c(m.content, crc32c(head));
}
template <class List>
void each(const ProtoReader& p, const List& list) {
    for (const auto& one : list) one.check(p);
}

}  // namespace

size_t bytes_of(ElementType type) {
    constexpr size_t kBytes[] = {4, 8, 2, 2, 4, 8, 1, 1, 1, 1};
    return kBytes[static_cast<size_t>(type)];
}

std::string_view name_of(ElementType type) {
    constexpr std::string_view kNames[] = {"float32", "float64", "float16", "bfloat16", "int32",
                                           "int64",   "int8",    "uint8",   "bool",     "quantised"};
    return kNames[static_cast<size_t>(type)];
}

std::string_view name_of(Encoding encoding) {
    constexpr std::string_view kNames[] = {"plain", "masked", "sparse_quantised", "signds", "top_k", "quantised"};
    return kNames[static_cast<size_t>(encoding)];
}

proto::Fields<Envelope> Envelope::fields() {
    static constexpr Field<Envelope> kFields[] = {filled<&Envelope::job>(1),       filled<&Envelope::client>(2),
                                                  field<&Envelope::iteration>(3),  field<&Envelope::timestamp>(4),
                                                  blob<&Envelope::content>(5),     blob<&Envelope::signature>(6),
                                                  blob<&Envelope::certificate>(7), checksum_field<Envelope>(8)};
    return kFields;
}

ProtoWriter Envelope::message() const { return with_checksum(*this, 8, checksum_of(*this)); }

void Envelope::check(const ProtoReader& p) const {
    name(p, "the job's name", job);
    name(p, "the client's name", client);
    not_negative(p, "the iteration", iteration);
    not_negative(p, "the timestamp", timestamp);
    key(p, "the signature", signature, kSignatureBytes, true);
    short_text(p, "the certificate", certificate);
    whole(p, checksum, checksum_of(*this));
}

std::string Envelope::signed_bytes(std::string_view endpoint) const {
    // Names have no line breaks, and the content is last: no two requests have the same bytes.
    return str("lunaria-fl 1\n", endpoint, "\n", job, "\n", client, "\n", iteration, "\n", timestamp, "\n", content);
}

proto::Fields<Reply> Reply::fields() {
    static constexpr Field<Reply> kFields[] = {field<&Reply::code>(1),      filled<&Reply::reason>(2),
                                               field<&Reply::iteration>(3), field<&Reply::next_request_time>(4),
                                               field<&Reply::timestamp>(5), blob<&Reply::content>(6),
                                               checksum_field<Reply>(7)};
    return kFields;
}

ProtoWriter Reply::message() const { return with_checksum(*this, 7, checksum_of(*this)); }

void Reply::check(const ProtoReader& p) const {
    constexpr Code kCodes[] = {Code::succeed, Code::not_ready, Code::out_of_time, Code::request_error,
                               Code::system_error};
    if (std::ranges::find(kCodes, code) == std::end(kCodes))
        p.fail(str("there is no code ", static_cast<int32_t>(code)));
    short_text(p, "the reason", reason);
    not_negative(p, "the iteration", iteration);
    not_negative(p, "the time of the next request", next_request_time);
    not_negative(p, "the timestamp", timestamp);
    whole(p, checksum, checksum_of(*this));
}

size_t Feature::elements() const {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    return count;
}

proto::Fields<Feature> Feature::fields() {
    static constexpr Field<Feature> kFields[] = {
        filled<&Feature::name>(1), shape_field(2),           field<&Feature::type>(3),         blob<&Feature::data>(4),
        field<&Feature::low>(5),   field<&Feature::high>(6), field<&Feature::is_aggregated>(7)};
    return kFields;
}

void Feature::check(const ProtoReader& p) const {
    messages::name(p, "a tensor's name", name);
    if (type < ElementType::float32 || type > ElementType::quantised)
        p.fail(str("tensor ", name, ": there is no type ", static_cast<int32_t>(type)));
    // A product of sizes that is more than the bytes of any message is no multiple that overflowed.
    size_t count = 1;
    for (const int64_t size : shape) {
        if (size < 0 || static_cast<uint64_t>(size) > kMostBytes)
            p.fail(str("tensor ", name, ": an axis has size ", size));
        count *= static_cast<size_t>(size);
        if (count > kMostBytes) p.fail(str("tensor ", name, ": its shape has more elements than a message holds"));
    }
    if (data.size() != count * bytes_of(type))
        p.fail(str("tensor ", name, " has ", data.size(), " bytes; its shape has ", count, " elements of ",
                   name_of(type)));
    if (type == ElementType::quantised) {
        finite(p, str("tensor ", name, ": low"), low);
        finite(p, str("tensor ", name, ": high"), high);
        if (low > high) p.fail(str("tensor ", name, ": low is ", low, ", more than high, ", high));
    }
}

proto::Fields<FeatureMap> FeatureMap::fields() {
    static constexpr Field<FeatureMap> kFields[] = {list<&FeatureMap::features>(1), field<&FeatureMap::version>(2)};
    return kFields;
}

void FeatureMap::check(const ProtoReader& p) const {
    each(p, features);
    not_negative(p, "the model's version", version);
}

proto::Fields<Metric> Metric::fields() {
    static constexpr Field<Metric> kFields[] = {filled<&Metric::name>(1), field<&Metric::value>(2)};
    return kFields;
}

void Metric::check(const ProtoReader& p) const {
    messages::name(p, "a metric's name", name);
    finite(p, str("metric ", name), value);
}

proto::Fields<Cipher> Cipher::fields() {
    static constexpr Field<Cipher> kFields[] = {
        filled<&Cipher::type>(1),           field<&Cipher::share_threshold>(2), field<&Cipher::neighbours>(3),
        field<&Cipher::ring_bits>(4),       field<&Cipher::fraction_bits>(5),   field<&Cipher::clip>(6),
        field<&Cipher::dp_eps>(7),          field<&Cipher::dp_delta>(8),        field<&Cipher::dp_norm_clip>(9),
        field<&Cipher::sign_k>(10),         field<&Cipher::sign_eps>(11),       field<&Cipher::sign_thr_ratio>(12),
        field<&Cipher::sign_global_lr>(13), field<&Cipher::sign_dim_out>(14),   field<&Cipher::most_weight>(15),
        field<&Cipher::counts_alike>(16),   field<&Cipher::further>(17)};
    return kFields;
}

void Cipher::check(const ProtoReader& p) const {
    name(p, "the encryption's type", type);
    for (const int64_t count :
         {share_threshold, neighbours, ring_bits, fraction_bits, sign_dim_out, most_weight, further})
        not_negative(p, "a number of the encryption", count);
    for (const double value : {clip, dp_eps, dp_delta, dp_norm_clip, sign_k, sign_eps, sign_thr_ratio, sign_global_lr})
        finite(p, "a number of the encryption", value);
    if (ring_bits > 64 || fraction_bits > ring_bits)
        p.fail(str("a ring of ", ring_bits, " bits, ", fraction_bits, " of them for fractions"));
}

proto::Fields<Plan> Plan::fields() {
    static constexpr Field<Plan> kFields[] = {
        filled<&Plan::aggregation>(1), filled<&Plan::rule>(2),        field<&Plan::iterations>(3),
        field<&Plan::epochs>(4),       field<&Plan::batch_size>(5),   field<&Plan::learning_rate>(6),
        list<&Plan::metrics>(7),       filled<&Plan::settings>(8),    list<&Plan::extra>(9),
        field<&Plan::upload>(10),      field<&Plan::sparse_rate>(11), field<&Plan::seed>(12),
        field<&Plan::deadline>(13),    field<&Plan::cipher>(14)};
    return kFields;
}

namespace {
void known(const ProtoReader& p, Encoding encoding) {
    if (encoding < Encoding::plain || encoding > Encoding::quantised)
        p.fail(str("there is no encoding ", static_cast<int32_t>(encoding)));
}
}  // namespace

void Plan::check(const ProtoReader& p) const {
    name(p, "the aggregation's name", aggregation);
    name(p, "the client rule's name", rule);
    for (const int64_t count : {iterations, epochs, batch_size, deadline})
        not_negative(p, "a number of the plan", count);
    finite(p, "the learning rate", learning_rate);
    finite(p, "the sparse rate", sparse_rate);
    for (const std::string& metric : metrics) name(p, "a metric's name", metric);
    short_text(p, "the settings", settings);
    each(p, extra);
    known(p, upload);
    cipher.check(p);
}

proto::Fields<StartFLJob> StartFLJob::fields() {
    static constexpr Field<StartFLJob> kFields[] = {field<&StartFLJob::samples>(1), blob<&StartFLJob::public_key>(2),
                                                    field<&StartFLJob::model_version>(3)};
    return kFields;
}

void StartFLJob::check(const ProtoReader& p) const {
    not_negative(p, "the number of samples", samples);
    key(p, "the public key", public_key, kKeyBytes, true);
    not_negative(p, "the model's version", model_version);
}

proto::Fields<StartedFLJob> StartedFLJob::fields() {
    static constexpr Field<StartedFLJob> kFields[] = {field<&StartedFLJob::is_selected>(1),
                                                      field<&StartedFLJob::plan>(2), field<&StartedFLJob::model>(3)};
    return kFields;
}

void StartedFLJob::check(const ProtoReader& p) const {
    plan.check(p);
    model.check(p);
}

proto::Fields<ClientKeys> ClientKeys::fields() {
    static constexpr Field<ClientKeys> kFields[] = {filled<&ClientKeys::client>(1), blob<&ClientKeys::cipher_key>(2),
                                                    blob<&ClientKeys::mask_key>(3), blob<&ClientKeys::signature>(4),
                                                    blob<&ClientKeys::certificate>(5)};
    return kFields;
}

void ClientKeys::check(const ProtoReader& p) const {
    name(p, "the client's name", client, true);
    key(p, "the cipher key", cipher_key, kKeyBytes, false);
    key(p, "the mask key", mask_key, kKeyBytes, false);
    key(p, "the signature of the keys", signature, kSignatureBytes, true);
    short_text(p, "the certificate", certificate);
}

proto::Fields<KeyList> KeyList::fields() {
    static constexpr Field<KeyList> kFields[] = {list<&KeyList::clients>(1)};
    return kFields;
}

void KeyList::check(const ProtoReader& p) const { each(p, clients); }

proto::Fields<Share> Share::fields() {
    static constexpr Field<Share> kFields[] = {filled<&Share::client>(1), field<&Share::secret>(2),
                                               blob<&Share::bytes>(3)};
    return kFields;
}

void Share::check(const ProtoReader& p) const {
    name(p, "the client's name", client);
    if (secret < Secret::sealed || secret > Secret::mask_key)
        p.fail(str("there is no secret of kind ", static_cast<int32_t>(secret)));
    if (bytes.empty() || bytes.size() > kMostSealed) p.fail(str("a share has ", bytes.size(), " bytes"));
}

proto::Fields<ShareList> ShareList::fields() {
    static constexpr Field<ShareList> kFields[] = {list<&ShareList::shares>(1)};
    return kFields;
}

void ShareList::check(const ProtoReader& p) const { each(p, shares); }

proto::Fields<ClientList> ClientList::fields() {
    static constexpr Field<ClientList> kFields[] = {list<&ClientList::clients>(1)};
    return kFields;
}

void ClientList::check(const ProtoReader& p) const {
    for (const std::string& client : clients) name(p, "a client's name", client);
}

proto::Fields<ListSignature> ListSignature::fields() {
    static constexpr Field<ListSignature> kFields[] = {
        filled<&ListSignature::client>(1), blob<&ListSignature::signature>(2), blob<&ListSignature::certificate>(3)};
    return kFields;
}

void ListSignature::check(const ProtoReader& p) const {
    name(p, "the client's name", client, true);
    key(p, "the signature of the list", signature, kSignatureBytes, false);
    short_text(p, "the certificate", certificate);
}

proto::Fields<ListSignatures> ListSignatures::fields() {
    static constexpr Field<ListSignatures> kFields[] = {list<&ListSignatures::signatures>(1)};
    return kFields;
}

void ListSignatures::check(const ProtoReader& p) const { each(p, signatures); }

proto::Fields<UpdateModel> UpdateModel::fields() {
    static constexpr Field<UpdateModel> kFields[] = {
        field<&UpdateModel::samples>(1),     field<&UpdateModel::encoding>(2), list<&UpdateModel::features>(3),
        blob<&UpdateModel::payload>(4),      list<&UpdateModel::extra>(5),     list<&UpdateModel::metrics>(6),
        field<&UpdateModel::base_version>(7)};
    return kFields;
}

void UpdateModel::check(const ProtoReader& p) const {
    not_negative(p, "the number of samples", samples);
    known(p, encoding);
    each(p, features);
    each(p, extra);
    each(p, metrics);
    not_negative(p, "the model's version", base_version);
}

proto::Fields<PushMetrics> PushMetrics::fields() {
    static constexpr Field<PushMetrics> kFields[] = {list<&PushMetrics::metrics>(1)};
    return kFields;
}

void PushMetrics::check(const ProtoReader& p) const { each(p, metrics); }

}  // namespace lunaria::federated::messages
