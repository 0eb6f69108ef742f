#include "core/federated/client/secure_steps.h"

#include "core/base/error.h"

namespace lunaria::federated::client {

namespace {

constexpr std::string_view kSecureStepsWhere = "federated.Client";

// The bytes of a key stream, in place of the system's random numbers.
Random stream_of(const std::string& seed) {
    std::shared_ptr<Keystream> stream = primitives(kSecureStepsWhere).keystream(Secret::of(seed));
    return [stream](std::span<uint8_t> to) { stream->next(to); };
}

}  // namespace

SecureSteps::SecureSteps(const messages::Plan& plan, std::string_view job, std::string_view client, int64_t iteration,
                         size_t size, std::optional<Identity> identity, SigningKeys signing_keys)
    : client_(client),
      seed_(Secret::random(kSecureStepsWhere).view()),
      is_kind_stable_(plan.cipher.type == "STABLE_PW_ENCRYPT") {
    const messages::Cipher& cipher = plan.cipher;
    settings_.job = job;
    settings_.iteration = iteration;
    settings_.ring.bits = static_cast<int>(cipher.ring_bits);
    settings_.size = size + static_cast<size_t>(cipher.further) + 1;  // the weight is the last element
    settings_.threshold = static_cast<size_t>(cipher.share_threshold);
    settings_.neighbours = static_cast<size_t>(cipher.neighbours);
    settings_.is_signed = identity.has_value();
    code_.ring = settings_.ring;
    code_.fraction_bits = static_cast<int>(cipher.fraction_bits);
    code_.clip = cipher.clip;
    code_.most_weight = cipher.most_weight;
    counts_alike_ = cipher.counts_alike;
    code_.refuses = true;
    begin(std::move(identity), std::move(signing_keys));
}

void SecureSteps::begin(std::optional<Identity> identity, SigningKeys signing_keys) {
    if (is_kind_stable_) {
        stable_ = std::make_unique<StableClient>(settings_, client_, std::move(identity), std::move(signing_keys),
                                                 stream_of(seed_));
        content_ = stable_->keys();
    } else {
        pairwise_ = std::make_unique<SecureClient>(settings_, client_, std::move(identity), std::move(signing_keys),
                                                   stream_of(seed_));
        content_ = pairwise_->keys();
    }
}

void SecureSteps::take(std::string_view answer) {
    answers_.emplace_back(answer);
    switch (static_cast<Answer>(answers_.size() - 1)) {
        case Answer::keys:
            if (stable_)
                stable_->take_keys(answer);
            else
                content_ = pairwise_->shares(answer);
            break;
        case Answer::secrets:
            break;  // is taken with the update
        case Answer::clients:
            content_ = pairwise_->list_signature(answer);
            if (!settings_.is_signed) content_ = pairwise_->reveal({});
            break;
        case Answer::signatures:
            content_ = pairwise_->reveal(answer);
            break;
        default:
            break;
    }
}

std::string SecureSteps::seal(std::span<const uint64_t> elements) {
    if (stable_) return stable_->update(settings_.iteration + 1, elements);
    return pairwise_->update(answers_.at(static_cast<size_t>(Answer::secrets)), elements);
}

std::string SecureSteps::sealed(const std::vector<double>& values, int64_t weight) {
    std::vector<uint64_t> elements(settings_.size);
    code_.encode(kSecureStepsWhere, std::span<const double>(values), counts_alike_ ? 1 : weight, elements);
    return seal(elements);
}

// Fields of the state.
enum : uint32_t {
    kClient = 1,
    kSeed,
    kJob,
    kIteration,
    kBits,
    kSize,
    kThreshold,
    kNeighbours,
    kFraction,
    kClip,
    kStable,
    kSigned,
    kAnswer,
    kMostWeight,
    kCountsAlike
};

std::string SecureSteps::saved() const {
    ProtoWriter w;
    w.bytes(kClient, client_).bytes(kSeed, seed_).bytes(kJob, settings_.job).integer(kIteration, settings_.iteration);
    w.integer(kBits, settings_.ring.bits).integer(kSize, static_cast<int64_t>(settings_.size));
    w.integer(kThreshold, static_cast<int64_t>(settings_.threshold));
    w.integer(kNeighbours, static_cast<int64_t>(settings_.neighbours));
    w.integer(kFraction, code_.fraction_bits).float64(kClip, code_.clip).integer(kMostWeight, code_.most_weight);
    w.integer(kCountsAlike, counts_alike_);
    w.integer(kStable, is_kind_stable_).integer(kSigned, settings_.is_signed);
    for (const std::string& answer : answers_) w.bytes(kAnswer, answer);
    return w.text();
}

SecureSteps SecureSteps::restored(std::string_view bytes, bool has_sealed, std::optional<Identity> identity,
                                  SigningKeys signing_keys) {
    SecureSteps steps;
    std::vector<std::string> answers;
    ProtoReader p(bytes, "the client's state");
    while (p.next()) {
        switch (p.field()) {
            case kClient:
                steps.client_ = p.bytes();
                break;
            case kSeed:
                steps.seed_ = p.bytes();
                break;
            case kJob:
                steps.settings_.job = p.bytes();
                break;
            case kIteration:
                steps.settings_.iteration = p.integer();
                break;
            case kBits:
                steps.settings_.ring.bits = static_cast<int>(p.integer());
                break;
            case kSize:
                steps.settings_.size = static_cast<size_t>(p.integer());
                break;
            case kThreshold:
                steps.settings_.threshold = static_cast<size_t>(p.integer());
                break;
            case kNeighbours:
                steps.settings_.neighbours = static_cast<size_t>(p.integer());
                break;
            case kFraction:
                steps.code_.fraction_bits = static_cast<int>(p.integer());
                break;
            case kClip:
                steps.code_.clip = p.float64();
                break;
            case kStable:
                steps.is_kind_stable_ = p.boolean();
                break;
            case kSigned:
                steps.settings_.is_signed = p.boolean();
                break;
            case kMostWeight:
                steps.code_.most_weight = p.integer();
                break;
            case kCountsAlike:
                steps.counts_alike_ = p.boolean();
                break;
            case kAnswer:
                answers.emplace_back(p.bytes());
                break;
            default:
                break;
        }
    }
    steps.code_.ring = steps.settings_.ring;
    steps.code_.refuses = true;
    steps.begin(std::move(identity), std::move(signing_keys));
    const size_t before_update = static_cast<size_t>(Answer::secrets) + 1;
    for (size_t i = 0; i < answers.size(); ++i) {
        // What was sealed is sent as it is; here the machine goes on behind it.
        if (i == before_update) steps.seal(std::vector<uint64_t>(steps.settings_.size));
        steps.take(answers[i]);
    }
    if (has_sealed && answers.size() == before_update) steps.seal(std::vector<uint64_t>(steps.settings_.size));
    return steps;
}

}  // namespace lunaria::federated::client
