#include "core/data/text/pieces.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <unordered_map>

#include "core/base/error.h"

namespace lunaria::text {

namespace {

class Model final : public Pieces {
  public:
    Model(std::string_view where, std::string_view model) : where_(where) {
        check(processor_.LoadFromSerializedProto({model.data(), model.size()}), "the model cannot be read: ");
    }
    std::vector<std::string> texts(std::string_view text) const override {
        std::vector<std::string> list;
        check(processor_.Encode({text.data(), text.size()}, &list), "");
        return list;
    }
    std::vector<int> numbers(std::string_view text) const override {
        std::vector<int> list;
        check(processor_.Encode({text.data(), text.size()}, &list), "");
        return list;
    }
    size_t size() const override { return static_cast<size_t>(processor_.GetPieceSize()); }

  private:
    void check(const sentencepiece::util::Status& status, std::string_view what) const {
        if (!status.ok()) throw value_error(where_, str(what, status.ToString()));
    }
    std::string where_;
    sentencepiece::SentencePieceProcessor processor_;
};

class Sentences final : public sentencepiece::SentenceIterator {
  public:
    explicit Sentences(const std::vector<std::string>& texts) : texts_(texts) {}
    bool done() const override { return at_ == texts_.size(); }
    void Next() override { ++at_; }
    const std::string& value() const override { return texts_[at_]; }
    sentencepiece::util::Status status() const override { return {}; }

  private:
    const std::vector<std::string>& texts_;
    size_t at_ = 0;
};

}  // namespace

std::shared_ptr<const Pieces> Pieces::load(std::string_view where, std::string_view model) {
    return std::make_shared<Model>(where, model);
}

std::string train_pieces(std::string_view where, const std::vector<std::string>& texts, const PieceTraining& training) {
    std::string model;
    std::unordered_map<std::string, std::string> options{{"vocab_size", str(training.size)},
                                                         {"character_coverage", str(training.coverage)},
                                                         {"model_type", training.kind},
                                                         {"minloglevel", "2"}};
    for (const std::string& option : training.options) {
        const size_t at = option.find('=');
        options[option.substr(0, at)] = option.substr(at + 1);
    }
    Sentences sentences(texts);
    const auto status = sentencepiece::SentencePieceTrainer::Train(options, &sentences, &model);
    if (!status.ok()) throw value_error(where, str("the texts make no model: ", status.ToString()));
    return model;
}

}  // namespace lunaria::text
