// Transforms whose arguments are numbers, texts and tensors, and the tables of them by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/data/transform.h"

namespace lunaria::transforms {

using data::Row;
using data::RowDraws;
using data::TransformPtr;

// The arguments that a transform was made with; its maker checks them.
struct Arguments {
    std::string where;  // the transform's name
    std::vector<double> numbers;
    std::vector<std::string> texts;
    std::vector<Tensor> tensors;
    std::vector<TransformPtr> parts;
    // A vocabulary or another object. Owners: the transforms that use it, and handles in the host language.
    std::shared_ptr<const void> shared;
    // The result of the entry's `prepare` for the other arguments. Owner: the transform; shared because its type is
    // erased.
    std::shared_ptr<const void> prepared;

    double number(size_t at) const { return numbers[at]; }
    int64_t integer(size_t at) const { return static_cast<int64_t>(numbers[at]); }
    bool flag(size_t at) const { return numbers[at] != 0; }
};

struct Entry {
    std::string_view name;
    size_t numbers;  // at least
    void (*run)(Row& row, const Arguments& a, RowDraws& draws);
    size_t tensors = 0;  // at least
    // The number of results for so many inputs; null: the same number.
    size_t (*results)(const Arguments& a, size_t inputs) = nullptr;
    // Called once before the first run, when all arguments are set; null: nothing to prepare.
    void (*prepare)(Arguments& a) = nullptr;
};

// The transform of this name in one of the tables. Throws argument_error when there is none, or arguments are missing.
TransformPtr make(std::string_view name, Arguments arguments);

// The same transforms, with some neighbours joined into one that gives the same result in fewer passes.
std::vector<TransformPtr> joined(const std::vector<TransformPtr>& transforms);

// Transforms made of others, and those of any values.
std::span<const Entry> generic_entries();
std::span<const Entry> value_entries();
// core/data/vision
std::span<const Entry> layout_entries();
std::span<const Entry> color_entries();
std::span<const Entry> tone_entries();
std::span<const Entry> warp_entries();
std::span<const Entry> crop_entries();
std::span<const Entry> file_entries();
std::span<const Entry> batch_entries();
std::span<const Entry> box_entries();
// core/data/text
std::span<const Entry> text_entries();
// core/data/audio
std::span<const Entry> audio_entries();

}  // namespace lunaria::transforms
