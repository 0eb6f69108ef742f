// Steps of training as light models: the graph of a function that gives a loss and gradients, or of a network that is
// trained elsewhere, whose weights are variables of the model.
#pragma once

#include <map>

#include "jit/lite/convert.h"

namespace lunaria::lite {

// `step`: a call as one graph (jit/trace/whole.h). Its parameters that `found` names are what the call reads outside:
// parameters of networks become variables of these names, other tensors constants. The others are inputs, in order. A
// variable that the call assigns to has its new value among the outputs, named "state:" and its name; the results come
// first, named by `options.outputs`. Throws state_error where the call changes anything else.
Converted convert_step(const ir::Graph& step, const std::map<std::string, Tensor>& found,
                       const ConvertOptions& options);

// A model as a constant of another one, which no step reads, by its name.
void embed(Converted& into, std::string name, const std::string& file);

}  // namespace lunaria::lite
