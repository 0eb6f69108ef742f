// The same as train.c, by the C++ interface.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "lunaria-lite.hpp"

namespace {

int failed(const char* what) {
    std::fprintf(stderr, "%s: %s\n", what, lunaria_lite::error().c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6) {
        std::fprintf(stderr, "usage: train MODEL STEPS RATE EXPORT FILE...\n");
        return 2;
    }
    lunaria_lite::Trainer trainer;
    if (!trainer.build(argv[1])) return failed("build");
    if (!trainer.set_learning_rate(std::atof(argv[3]))) return failed("rate");
    std::vector<lunaria_lite::Tensor> inputs = trainer.inputs();
    if (inputs.size() != static_cast<std::size_t>(argc - 5)) return failed("another number of inputs");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        std::ifstream file(argv[5 + i], std::ios::binary);
        if (!file.read(inputs[i].data<char>(), static_cast<std::streamsize>(inputs[i].bytes())))
            return failed("too few elements");
    }
    for (int step = 0; step < std::atoi(argv[2]); ++step) {
        float loss = 0;
        if (!trainer.step(loss)) return failed("step");
        std::printf("%.6f\n", static_cast<double>(loss));
    }
    return trainer.export_model(argv[4]) ? 0 : failed("export");
}
