/* Loads a program, lists what it takes and gives, and runs it on one float32 input that is filled with 0.5.
 *
 *     cc run.c $(pkg-config --cflags --libs lunaria) -o run && ./run net.onnx */
#include <stdio.h>
#include <stdlib.h>

#include "lunaria.h"

static void print_info(const char* what, const lunaria_info* info) {
    printf("%s %s: dtype %d, shape (", what, info->name, (int)info->dtype);
    for (int i = 0; i < info->rank; ++i) printf(i ? ", %lld" : "%lld", (long long)info->shape[i]);
    printf(")\n");
}

int main(int count, char** words) {
    lunaria_program* program = count > 1 ? lunaria_load(words[1]) : NULL;
    lunaria_info info;
    lunaria_tensor input, output = {0};
    size_t size = 1;
    if (!program) {
        fprintf(stderr, "error: %s\n", count > 1 ? lunaria_error() : "usage: run FILE");
        return 1;
    }
    for (size_t i = 0; i < lunaria_input_count(program); ++i)
        if (lunaria_input(program, i, &info) == 0) print_info("input", &info);
    for (size_t i = 0; i < lunaria_output_count(program); ++i)
        if (lunaria_output(program, i, &info) == 0) print_info("output", &info);

    if (lunaria_input(program, 0, &info) != 0) return 1;
    input.dtype = LUNARIA_FLOAT32;
    input.rank = info.rank;
    for (int i = 0; i < info.rank; ++i) size *= (size_t)(input.shape[i] = info.shape[i] < 0 ? 2 : info.shape[i]);
    float* elements = malloc(size * sizeof(float));
    for (size_t i = 0; i < size; ++i) elements[i] = 0.5f;
    input.data = elements;
    input.bytes = size * sizeof(float);

    /* The library's memory, since output.data is NULL. */
    const int failed = lunaria_run(program, &input, 1, &output, 1);
    if (failed)
        fprintf(stderr, "error: %s\n", lunaria_error());
    else
        for (size_t i = 0; i < output.bytes / sizeof(float); ++i) printf("%.6f\n", (double)((float*)output.data)[i]);
    free(elements);
    lunaria_free(program);
    return failed ? 1 : 0;
}
