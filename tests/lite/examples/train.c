/* Trains a light file on one batch from files: train MODEL STEPS RATE EXPORT FILE... (an input each). Prints the loss of
 * each step, and writes the network as it predicts to EXPORT. */
#include <stdio.h>
#include <stdlib.h>

#include "lunaria-lite.h"

static int failed(const char* what) {
    fprintf(stderr, "%s: %s\n", what, lunaria_lite_error());
    return 1;
}

static int train(lunaria_lite_trainer* trainer, int argc, char** argv) {
    if (lunaria_lite_trainer_build_from_file(trainer, argv[1], NULL) != 0) return failed("build");
    if (lunaria_lite_trainer_set_learning_rate(trainer, atof(argv[3])) != 0) return failed("rate");
    size_t count = 0;
    lunaria_lite_tensor* inputs = lunaria_lite_trainer_inputs(trainer, &count);
    if (count != (size_t)(argc - 5)) return failed("another number of inputs");
    for (size_t i = 0; i < count; ++i) {
        FILE* file = fopen(argv[5 + i], "rb");
        const size_t read = file ? fread(inputs[i].data, 1, inputs[i].bytes, file) : 0;
        if (file) fclose(file);
        if (read != inputs[i].bytes) return failed("too few elements");
    }
    for (int step = 0; step < atoi(argv[2]); ++step) {
        float loss = 0;
        if (lunaria_lite_trainer_step(trainer, &loss) != 0) return failed("step");
        printf("%.6f\n", (double)loss);
    }
    return lunaria_lite_trainer_export(trainer, argv[4]) == 0 ? 0 : failed("export");
}

int main(int argc, char** argv) {
    if (argc < 6) {
        fprintf(stderr, "usage: train MODEL STEPS RATE EXPORT FILE...\n");
        return 2;
    }
    lunaria_lite_trainer* trainer = lunaria_lite_trainer_create();
    const int code = trainer ? train(trainer, argc, argv) : 1;
    lunaria_lite_trainer_free(trainer);
    return code;
}
