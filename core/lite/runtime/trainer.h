// Training with a light model that computes a loss and gradients: the steps of the optimizer, loss scaling, batches
// that are added up, and the network as it predicts with the present weights.
//
// Such a model's first output is the loss; its other outputs are named "gradient:" or "state:" and a variable, whose
// gradient or next value they are. The last input, "sens", multiplies the loss. Properties name the optimizer and its
// numbers; variables "moment1:", "moment2:", "most:" and "steps" hold its state, so that a saved model continues. The
// constant "predict" is a file of its own: the network with the same variables.
#pragma once

#include "core/lite/runtime/executor.h"

namespace lunaria::lite {

struct LossScale {
    float scale = 1;
    bool is_dynamic = false;  // halved after an overflow, doubled after `patience` steps without one
    int patience = 1000;
};

class Trainer {
  public:
    // Null and a message where the model is none that trains.
    static std::unique_ptr<Trainer> make(std::shared_ptr<Executor> executor, std::string& fault);

    Executor& executor() { return *executor_; }
    size_t inputs() const { return executor_->model().inputs.size() - 1; }  // of the caller: "sens" is the trainer's

    // Forward and backward for one batch, and a step of the optimizer once as many as the virtual batch has are done.
    // The loss is that of this batch. Nothing changes where a gradient is not finite and the loss is scaled.
    bool step(std::span<const void* const> inputs, double& loss, std::string& fault);
    // The loss alone: no variable changes.
    bool loss_of(std::span<const void* const> inputs, double& loss, std::string& fault);

    double learning_rate = 0;
    LossScale loss_scale;
    bool set_virtual_batch(int batches, std::string& fault);
    int64_t steps() const;  // of the optimizer
    bool was_skipped() const { return was_skipped_; }

    // The network as it predicts, with the present weights; it is the trainer's. Null and a message where the file has
    // none.
    std::shared_ptr<Executor> predictor(std::string& fault);
    // Everything that training goes on from.
    bool save(const std::string& path, std::string& fault) const { return executor_->save(path, fault); }
    // The network as it predicts: what follows from weights alone is computed once and stored.
    bool export_predictor(const std::string& path, std::string& fault);

  private:
    struct Weight {
        std::string name;
        uint32_t variable = kNone, gradient = kNone;  // values
        uint32_t moment1 = kNone, moment2 = kNone, most = kNone;
        int64_t count = 0;
        bool decays = true;
        std::vector<float> sum;  // of the gradients of a virtual batch
    };
    struct Copy {
        uint32_t from, to;
        size_t bytes;
    };
    Trainer() = default;
    bool read(std::string& fault);
    bool find_weights(std::string& fault);
    bool run(std::span<const void* const> inputs, std::string& fault);
    bool is_finite() const;
    void change_scale(bool good);
    void update();
    void update_momentum(Weight& w, const float* gradient);
    void update_adam(Weight& w, const float* gradient);
    float* at(uint32_t value) { return reinterpret_cast<float*>(executor_->state(value)); }
    double loss() const;

    std::shared_ptr<Executor> executor_, predictor_;
    std::vector<Weight> weights_;
    std::vector<Copy> states_;
    uint32_t steps_ = kNone;
    bool is_adam_ = false;
    double momentum_ = 0, dampening_ = 0, weight_decay_ = 0, beta1_ = 0, beta2_ = 0, eps_ = 0;
    bool nesterov_ = false, corrects_bias_ = true, scales_eps_ = false, is_decoupled_ = false;
    int virtual_batch_ = 1, added_ = 0, good_ = 0;
    bool was_skipped_ = false;
    float sens_ = 1;
    std::vector<const void*> given_;
    std::vector<void*> wanted_;
};

}  // namespace lunaria::lite
