// A light model that Lua runs, or trains.
#pragma once

#include <lua.hpp>
#include <memory>
#include <string>
#include <vector>

#include "core/lite/format/secret.h"
#include "core/lite/runtime/trainer.h"
#include "core/tensor/tensor.h"

namespace lunaria {

// The file is declared first: the executor refers to its bytes.
struct RunningModel {
    std::string path;
    Tensor file;
    lite::FileBytes plain;  // of an encrypted file
    std::shared_ptr<lite::Executor> executor;
    std::unique_ptr<lite::Trainer> trainer;
    std::vector<double> seconds;  // of each step of the last run with times
    double whole = 0;             // of that run
};

RunningModel& light_model_at(lua_State* L, int index);
void push_light_model(lua_State* L, std::unique_ptr<RunningModel> model);
[[noreturn]] void fail_of(const RunningModel& model, std::string_view fault);
// The tensors of the table at the index as the first `count` inputs of the model: dense, checked. The addresses go to
// `from`.
std::vector<Tensor> light_inputs(lua_State* L, int index, const RunningModel& model, size_t count,
                                 std::vector<const void*>& from);

// Adds the functions of training to the module on the stack.
void add_lite_trainer(lua_State* L);

}  // namespace lunaria
