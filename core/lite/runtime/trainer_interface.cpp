// The C interface of training.
#include <algorithm>

#include "core/lite/runtime/interface.h"
#include "core/lite/runtime/trainer.h"

namespace lite = lunaria::lite;
using lite::fail, lite::guarded;

struct lunaria_lite_trainer {
    lunaria_lite_model model;  // that trains
    lunaria_lite_model predictor;
    lunaria_lite_model* backbone = nullptr;  // of the caller
    std::unique_ptr<lite::Trainer> trainer;
    std::vector<lunaria_lite_tensor> inputs;  // of the backbone, and those that it does not give
    std::vector<const void*> given;
};

namespace {

int check_built(const lunaria_lite_trainer* trainer) {
    return trainer && trainer->trainer ? 0 : fail("the trainer is not built");
}

size_t first_own(const lunaria_lite_trainer& t) { return t.backbone ? t.backbone->outputs.size() : 0; }

// The outputs of the backbone are the first inputs of what trains.
int check_backbone(const lunaria_lite_trainer& t) {
    const size_t count = first_own(t);
    if (count > t.trainer->inputs()) return fail("the backbone has more outputs than the head has inputs");
    for (size_t i = 0; i < count; ++i) {
        const lunaria_lite_tensor &out = t.backbone->outputs[i], &in = t.model.inputs[i];
        if (out.dtype != in.dtype || out.rank != in.rank || !std::equal(in.shape, in.shape + in.rank, out.shape))
            return fail("output " + std::to_string(i) + " of the backbone is not what the head takes");
    }
    return 0;
}

void list_inputs(lunaria_lite_trainer& t) {
    t.inputs.clear();
    if (t.backbone) t.inputs = t.backbone->inputs;
    for (size_t i = first_own(t); i < t.trainer->inputs(); ++i) t.inputs.push_back(t.model.inputs[i]);
}

// Runs the backbone and collects the inputs of what trains.
int collect(lunaria_lite_trainer& t) {
    const size_t own = first_own(t), before = t.backbone ? t.backbone->inputs.size() : 0;
    t.given.clear();
    if (t.backbone) {
        for (size_t i = 0; i < before; ++i) t.backbone->inputs[i].data = t.inputs[i].data;
        if (lunaria_lite_model_predict(t.backbone, nullptr, nullptr, nullptr) != 0) return -1;
        for (const lunaria_lite_tensor& out : t.backbone->outputs) t.given.push_back(out.data);
    }
    for (size_t i = own; i < t.trainer->inputs(); ++i) {
        lunaria_lite_tensor& in = t.inputs[before + i - own];
        if (!in.data) in.data = t.trainer->executor().memory(t.trainer->executor().model().inputs[i]);
        t.given.push_back(in.data);
    }
    return 0;
}

template <class F>
int run(lunaria_lite_trainer* trainer, float* loss, F&& f) {
    return guarded([&] {
        if (check_built(trainer) != 0 || collect(*trainer) != 0) return -1;
        double found = 0;
        std::string fault;
        if (!f(*trainer->trainer, found, fault)) return fail(fault);
        if (loss) *loss = static_cast<float>(found);
        return 0;
    });
}

}  // namespace

extern "C" {

lunaria_lite_trainer* lunaria_lite_trainer_create(void) { return new (std::nothrow) lunaria_lite_trainer; }
void lunaria_lite_trainer_free(lunaria_lite_trainer* trainer) { delete trainer; }

int lunaria_lite_trainer_set_key(lunaria_lite_trainer* trainer, const void* key, size_t bytes) {
    return lunaria_lite_model_set_key(trainer ? &trainer->model : nullptr, key, bytes);
}
int lunaria_lite_trainer_set_backbone(lunaria_lite_trainer* trainer, lunaria_lite_model* backbone) {
    if (!trainer || !backbone || !backbone->executor) return fail("there is no trainer or no model that is built");
    if (trainer->trainer) return fail("the trainer is built already: set its backbone before");
    trainer->backbone = backbone;
    return 0;
}
int lunaria_lite_trainer_build_from_file(lunaria_lite_trainer* trainer, const char* path,
                                         lunaria_lite_context* context) {
    return guarded([&] {
        if (!trainer) return fail("there is no trainer");
        if (lunaria_lite_model_build_from_file(&trainer->model, path, context) != 0) return -1;
        std::string fault;
        trainer->trainer = lite::Trainer::make(trainer->model.executor, fault);
        if (!trainer->trainer) return fail(std::string(path) + ": " + fault);
        if (check_backbone(*trainer) != 0) {
            trainer->trainer.reset();
            return -1;
        }
        list_inputs(*trainer);
        return 0;
    });
}

lunaria_lite_tensor* lunaria_lite_trainer_inputs(lunaria_lite_trainer* trainer, size_t* count) {
    if (check_built(trainer) != 0) return nullptr;
    if (count) *count = trainer->inputs.size();
    return trainer->inputs.data();
}

int lunaria_lite_trainer_step(lunaria_lite_trainer* trainer, float* loss) {
    return run(trainer, loss, [&](lite::Trainer& t, double& found, std::string& fault) {
        return t.step(trainer->given, found, fault);
    });
}
int lunaria_lite_trainer_loss(lunaria_lite_trainer* trainer, float* loss) {
    return run(trainer, loss, [&](lite::Trainer& t, double& found, std::string& fault) {
        return t.loss_of(trainer->given, found, fault);
    });
}

int lunaria_lite_trainer_set_learning_rate(lunaria_lite_trainer* trainer, double rate) {
    if (check_built(trainer) != 0) return -1;
    if (!(rate >= 0)) return fail("a learning rate is not negative");
    trainer->trainer->learning_rate = rate;
    return 0;
}
double lunaria_lite_trainer_learning_rate(const lunaria_lite_trainer* trainer) {
    return check_built(trainer) == 0 ? trainer->trainer->learning_rate : -1;
}
int lunaria_lite_trainer_set_virtual_batch(lunaria_lite_trainer* trainer, int batches) {
    if (check_built(trainer) != 0) return -1;
    std::string fault;
    return trainer->trainer->set_virtual_batch(batches, fault) ? 0 : fail(fault);
}
int lunaria_lite_trainer_set_loss_scale(lunaria_lite_trainer* trainer, float scale, int patience) {
    if (check_built(trainer) != 0) return -1;
    if (!(scale > 0 && scale <= 0x1p24F) || patience < 0)
        return fail("a loss scale is from 0 to 16777216, its patience not negative");
    trainer->trainer->loss_scale = {scale, patience > 0, patience};
    return 0;
}
float lunaria_lite_trainer_loss_scale(const lunaria_lite_trainer* trainer) {
    return check_built(trainer) == 0 ? trainer->trainer->loss_scale.scale : -1;
}
int64_t lunaria_lite_trainer_steps(const lunaria_lite_trainer* trainer) {
    return check_built(trainer) == 0 ? trainer->trainer->steps() : -1;
}

lunaria_lite_model* lunaria_lite_trainer_model(lunaria_lite_trainer* trainer) {
    return check_built(trainer) == 0 ? &trainer->model : nullptr;
}
lunaria_lite_model* lunaria_lite_trainer_predictor(lunaria_lite_trainer* trainer) {
    const int good = guarded([&] {
        if (check_built(trainer) != 0) return -1;
        std::string fault;
        const std::shared_ptr<lite::Executor> network = trainer->trainer->predictor(fault);
        if (!network) return fail(fault);
        if (trainer->predictor.executor) return 0;
        trainer->predictor.executor = network;
        return lite::describe(trainer->predictor) ? 0 : fail("there is not enough memory");
    });
    return good == 0 ? &trainer->predictor : nullptr;
}
int lunaria_lite_trainer_save(lunaria_lite_trainer* trainer, const char* path) {
    return guarded([&] {
        if (check_built(trainer) != 0) return -1;
        if (!path) return fail("there is no path");
        std::string fault;
        return trainer->trainer->save(path, fault) ? 0 : fail(fault);
    });
}
int lunaria_lite_trainer_export(lunaria_lite_trainer* trainer, const char* path) {
    return guarded([&] {
        if (check_built(trainer) != 0) return -1;
        if (!path) return fail("there is no path");
        std::string fault;
        return trainer->trainer->export_predictor(path, fault) ? 0 : fail(fault);
    });
}

}  // extern "C"
