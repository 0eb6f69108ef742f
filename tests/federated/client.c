/* A party of a federated job without Lua: client URL JOB NAME MODEL DATA LABELS [OPTION=VALUE...]
 *
 * MODEL is a file of ms.lite.convert_training with a network, its loss and an optimizer for batches of one size; DATA and
 * LABELS are the rows that the party trains with, as the model's inputs take them, one after the other. Each iteration
 * goes through the rows as often as the plan says. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lunaria_fl.h"

typedef struct {
    char *data, *labels;
    size_t data_bytes, label_bytes; /* of all rows */
} rows;

static lunaria_fl_client* running;

static void stop(int signal_number) {
    (void)signal_number;
    lunaria_fl_client_stop(running);
}

static int failed(const char* what, const char* why) {
    fprintf(stderr, "%s: %s\n", what, why);
    return 1;
}

static char* read_file(const char* path, size_t* bytes) {
    FILE* file = fopen(path, "rb");
    char* content = NULL;
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0) size = ftell(file);
    if (size > 0 && fseek(file, 0, SEEK_SET) == 0) content = malloc((size_t)size);
    if (content && fread(content, 1, (size_t)size, file) != (size_t)size) {
        free(content);
        content = NULL;
    }
    if (file) fclose(file);
    *bytes = content ? (size_t)size : 0;
    return content;
}

/* How many whole batches the rows have. */
static size_t batches_of(const rows* all, const lunaria_lite_tensor* inputs) {
    const size_t data = all->data_bytes / inputs[0].bytes, labels = all->label_bytes / inputs[1].bytes;
    return data < labels ? data : labels;
}

/* Called for each iteration with the job's model in the trainer. */
static int64_t train(lunaria_lite_trainer* trainer, const lunaria_fl_plan* plan, void* user) {
    const rows* all = user;
    size_t count = 0;
    lunaria_lite_tensor* inputs = lunaria_lite_trainer_inputs(trainer, &count);
    if (count != 2 || batches_of(all, inputs) == 0) return -1;
    const size_t batches = batches_of(all, inputs);
    const int64_t batch = inputs[0].rank > 0 ? inputs[0].shape[0] : 1;
    float loss = 0;
    if (lunaria_lite_trainer_set_learning_rate(trainer, plan->learning_rate) != 0) return -1;
    for (int64_t epoch = 0; epoch < plan->epochs; ++epoch)
        for (size_t i = 0; i < batches; ++i) {
            memcpy(inputs[0].data, all->data + i * inputs[0].bytes, inputs[0].bytes);
            memcpy(inputs[1].data, all->labels + i * inputs[1].bytes, inputs[1].bytes);
            if (lunaria_lite_trainer_step(trainer, &loss) != 0) return -1;
        }
    lunaria_fl_client_metric(running, "loss", (double)loss);
    return (int64_t)batches * batch;
}

/* Called when an iteration has ended, with its model. */
static void evaluate(lunaria_lite_trainer* trainer, const lunaria_fl_plan* plan, void* user) {
    const rows* all = user;
    size_t count = 0;
    float loss = 0;
    lunaria_lite_tensor* inputs = lunaria_lite_trainer_inputs(trainer, &count);
    memcpy(inputs[0].data, all->data, inputs[0].bytes);
    memcpy(inputs[1].data, all->labels, inputs[1].bytes);
    if (lunaria_lite_trainer_loss(trainer, &loss) != 0) return;
    printf("iteration %lld of %lld: loss %.6f\n", (long long)plan->iteration, (long long)plan->iterations, (double)loss);
    fflush(stdout);
}

static int run(lunaria_lite_trainer* trainer, rows* all, int argc, char** argv) {
    if (!trainer || lunaria_lite_trainer_build_from_file(trainer, argv[4], NULL) != 0)
        return failed(argv[4], lunaria_lite_error());
    all->data = read_file(argv[5], &all->data_bytes);
    all->labels = read_file(argv[6], &all->label_bytes);
    if (!all->data || !all->labels) return failed("rows", "a file cannot be read");
    running = lunaria_fl_client_create(argv[1], argv[2], argv[3]);
    if (!running) return failed("client", lunaria_fl_error());
    for (int i = 7; i < argc; ++i) {
        char* value = strchr(argv[i], '=');
        if (!value) return failed(argv[i], "an option is NAME=VALUE");
        *value++ = '\0';
        if (lunaria_fl_client_set(running, argv[i], value) != 0) return failed(argv[i], lunaria_fl_error());
    }
    signal(SIGINT, stop);
    if (lunaria_fl_client_run(running, trainer, train, evaluate, all) != 0) return failed("client", lunaria_fl_error());
    printf("%lld updates, %lld requests sent again\n", (long long)lunaria_fl_client_updates(running),
           (long long)lunaria_fl_client_repeats(running));
    return 0;
}

int main(int argc, char** argv) {
    if (argc < 7) {
        fprintf(stderr, "usage: client URL JOB NAME MODEL DATA LABELS [OPTION=VALUE...]\n");
        return 2;
    }
    rows all = {NULL, NULL, 0, 0};
    lunaria_lite_trainer* trainer = lunaria_lite_trainer_create();
    const int code = run(trainer, &all, argc, argv);
    lunaria_fl_client_free(running);
    lunaria_lite_trainer_free(trainer);
    free(all.data);
    free(all.labels);
    return code;
}
