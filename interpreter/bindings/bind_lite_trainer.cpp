// The part of the module behind lunaria/lite/training.lua that trains: light models on which the optimizer steps.
#include "core/base/error.h"
#include "interpreter/bindings/light_model.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

lite::Trainer& trainer_at(lua_State* L) { return *light_model_at(L, 1).trainer; }

// train(model): makes it one that trains.
int train(lua_State* L) {
    RunningModel& model = light_model_at(L, 1);
    std::string fault;
    model.trainer = lite::Trainer::make(model.executor, fault);
    if (!model.trainer) fail_of(model, fault);
    return 0;
}

template <bool kSteps>
int run_trainer(lua_State* L) {
    RunningModel& model = light_model_at(L, 1);
    std::vector<const void*> from;
    const std::vector<Tensor> given = light_inputs(L, 2, model, model.trainer->inputs(), from);
    std::string fault;
    double loss = 0;
    const bool good = kSteps ? model.trainer->step(from, loss, fault) : model.trainer->loss_of(from, loss, fault);
    if (!good) fail_of(model, fault);
    lua_pushnumber(L, loss);
    lua_pushboolean(L, kSteps && model.trainer->was_skipped());
    return 2;
}

// rate(model, rate or nil) -> the learning rate
int rate(lua_State* L) {
    lite::Trainer& trainer = trainer_at(L);
    if (!lua_isnoneornil(L, 2)) trainer.learning_rate = luaL_checknumber(L, 2);
    lua_pushnumber(L, trainer.learning_rate);
    return 1;
}

int virtual_batch(lua_State* L) {
    std::string fault;
    const RunningModel& model = light_model_at(L, 1);
    if (!model.trainer->set_virtual_batch(static_cast<int>(luaL_checkinteger(L, 2)), fault)) fail_of(model, fault);
    return 0;
}

// scale(model, scale or nil, patience) -> the loss scale
int scale(lua_State* L) {
    lite::Trainer& trainer = trainer_at(L);
    if (!lua_isnoneornil(L, 2)) {
        const auto patience = static_cast<int>(luaL_checkinteger(L, 3));
        trainer.loss_scale = {static_cast<float>(luaL_checknumber(L, 2)), patience > 0, patience};
    }
    lua_pushnumber(L, static_cast<lua_Number>(trainer.loss_scale.scale));
    return 1;
}

int trainer_steps(lua_State* L) {
    lua_pushinteger(L, trainer_at(L).steps());
    return 1;
}

// predictor(model) -> a model over the same file, which must stay alive.
int predictor(lua_State* L) {
    RunningModel& model = light_model_at(L, 1);
    auto network = std::make_unique<RunningModel>();
    std::string fault;
    network->path = model.path;
    network->executor = model.trainer->predictor(fault);
    if (!network->executor) fail_of(model, fault);
    push_light_model(L, std::move(network));
    return 1;
}

int export_predictor(lua_State* L) {
    const RunningModel& model = light_model_at(L, 1);
    std::string fault;
    if (!model.trainer->export_predictor(path_at(L, 2, "lite.Trainer"), fault)) fail_of(model, fault);
    return 0;
}

}  // namespace

void add_lite_trainer(lua_State* L) {
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"train", protect<train>},
                                  {"step", protect<run_trainer<true>>},
                                  {"loss", protect<run_trainer<false>>},
                                  {"rate", protect<rate>},
                                  {"virtual_batch", protect<virtual_batch>},
                                  {"scale", protect<scale>},
                                  {"steps_done", protect<trainer_steps>},
                                  {"predictor", protect<predictor>},
                                  {"export", protect<export_predictor>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
}

}  // namespace lunaria
