#include "core/data/files/file_contents.h"

#include "core/base/error.h"
#include "core/data/audio/sound.h"

namespace lunaria::data {

namespace {

class SoundDecoder final : public Transform {
  public:
    SoundDecoder() : Transform("DecodeSound") {}
    size_t results(size_t inputs) const override {
        if (inputs != 1) throw argument_error(name(), str("takes one column, got ", inputs));
        return 2;
    }
    void apply(Row& row, RowDraws&) const override {
        if (!row[0].is_tensor() || row[0].tensor().dtype() != DType::u8)
            throw argument_error(name(), "the bytes of a file are expected");
        const Tensor bytes = row[0].tensor().contiguous();
        const audio::Sound sound =
            audio::read_sound(name(), {static_cast<const char*>(bytes.raw()), bytes.nbytes()}, false);
        row = {Value(sound.samples), Value(Tensor::scalar(DType::i32, static_cast<double>(sound.rate)))};
    }
};

class TextSplitter final : public Transform {
  public:
    TextSplitter() : Transform("TextSplitter") {}
    void apply(Row& row, RowDraws&) const override {
        std::string_view text = row[0].string();
        std::vector<Value> list;
        for (size_t at = 0; (at = text.find('\0')) != std::string_view::npos; text.remove_prefix(at + 1))
            list.emplace_back(text.substr(0, at));
        list.emplace_back(text);
        row[0] = Value::list(std::move(list));
    }
};

}  // namespace

TransformPtr text_splitter() { return std::make_shared<TextSplitter>(); }

TransformPtr sound_decoder() { return std::make_shared<SoundDecoder>(); }

}  // namespace lunaria::data
