/* Runs a light model on zeros, or on elements from a file: run MODEL [THREADS [ROWS [FILE]]]. Prints the outputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lunaria-lite.h"

static int failed(const char* what) {
    fprintf(stderr, "%s: %s\n", what, lunaria_lite_error());
    return 1;
}

static int note(const lunaria_lite_step* step, void* user) {
    ++*(size_t*)user;
    return step->kind[0] == 0; /* 0 goes on */
}

static int run(lunaria_lite_model* model, int argc, char** argv) {
    lunaria_lite_context* context = lunaria_lite_context_create();
    if (!context || lunaria_lite_context_set_threads(context, argc > 2 ? atoi(argv[2]) : 1) != 0) return failed("context");
    int code = lunaria_lite_model_build_from_file(model, argv[1], context);
    lunaria_lite_context_free(context);
    if (code != 0) return failed("build");

    size_t count = 0, steps = 0;
    lunaria_lite_tensor* inputs = lunaria_lite_model_inputs(model, &count);
    if (argc > 3 && count == 1 && atoi(argv[3]) > 0) {
        lunaria_lite_tensor shape = inputs[0];
        shape.shape[0] = atoi(argv[3]);
        if (lunaria_lite_model_resize(model, &shape, 1) != 0) return failed("resize");
    }
    FILE* file = argc > 4 ? fopen(argv[4], "rb") : NULL;
    for (size_t i = 0; i < count; ++i) {
        memset(inputs[i].data, 0, inputs[i].bytes);
        if (file && fread(inputs[i].data, 1, inputs[i].bytes, file) != inputs[i].bytes) return failed("too few elements");
    }
    if (file) fclose(file);

    if (lunaria_lite_model_predict(model, NULL, note, &steps) != 0) return failed("predict");
    const lunaria_lite_tensor* outputs = lunaria_lite_model_outputs(model, &count);
    for (size_t i = 0; i < count; ++i) {
        printf("%s:", outputs[i].name);
        for (size_t j = 0; j < outputs[i].bytes / sizeof(float) && outputs[i].dtype == LUNARIA_LITE_FLOAT32; ++j)
            printf(" %.6f", (double)((const float*)outputs[i].data)[j]);
        printf("\n");
    }
    fprintf(stderr, "%zu steps\n", steps);
    return 0;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: run MODEL [THREADS [ROWS [FILE]]]\n");
        return 2;
    }
    lunaria_lite_model* model = lunaria_lite_model_create();
    int code = model ? run(model, argc, argv) : 1;
    lunaria_lite_model_free(model);
    return code;
}
