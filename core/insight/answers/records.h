// Answers about records that are no scalars, and what answers share.
#pragma once

#include "core/insight/store/contents.h"
#include "core/insight/store/store.h"
#include "core/io/json_text.h"
#include "core/io/question.h"
#include "core/tensor/tensor.h"

namespace lunaria::insight {

// Throws a Refusal where there is no such run or tag.
const Run& run_of(const Store::View& view, std::string_view id);
std::string tag_of(const Run& run, Kind kind, std::string_view id);

// runs/RUN/KIND/TAG[/INDEX]: images, audio, histograms, tensors, texts, pr_curves, landscapes. Throws a Refusal for all
// other kinds.
Answer records_answer(const Store& store, const Question& question);

// Bins of a histogram, [left, right, count] each; empty ones at both ends are left out.
std::vector<std::array<double, 3>> bins_of(const Shown::Histogram& histogram);
// The type of an encoded picture by its first bytes.
std::string_view picture_type(std::string_view bytes);

// Numbers of a tensor's elements. NaN and infinite ones count only as such.
struct Statistics {
    double min = 0, max = 0, mean = 0;
    int64_t count = 0, nan = 0, up = 0, down = 0, zeros = 0;
};
Statistics statistics_of(const Tensor& tensor);

// A part of a tensor of at most two axes: `dims` has an index or ':' for each axis ("0,:,:"); empty: the last two axes
// at the first indices. Throws a Refusal where it does not fit the tensor, or the part has more than `most` elements.
struct Slice {
    std::vector<int64_t> shape;
    std::vector<double> values;
};
Slice slice_of(const Tensor& tensor, const std::string& dims, int64_t most);
// Nested lists.
void put_slice(JsonText& json, const Slice& slice);

}  // namespace lunaria::insight
