// The same as run.c by the C++ interface.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lunaria-lite.hpp"

static int failed(const char* what) {
    std::fprintf(stderr, "%s: %s\n", what, lunaria_lite::error().c_str());
    return 1;
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    lunaria_lite::Context context;
    lunaria_lite::Model model;
    if (!context.set_threads(argc > 2 ? std::atoi(argv[2]) : 1)) return failed("context");
    if (!model.build(argv[1], context)) return failed("build");
    std::vector<lunaria_lite::Tensor> inputs = model.inputs();
    if (argc > 3 && std::atoi(argv[3]) > 0) {
        std::vector<std::vector<std::int64_t>> shapes;
        for (const lunaria_lite::Tensor& t : inputs) shapes.push_back(t.shape());
        shapes[0][0] = std::atoi(argv[3]);
        if (!model.resize(shapes)) return failed("resize");
    }
    std::FILE* file = argc > 4 ? std::fopen(argv[4], "rb") : nullptr;
    for (const lunaria_lite::Tensor& t : inputs) {
        std::memset(t.data<char>(), 0, t.bytes());
        if (file && std::fread(t.data<char>(), 1, t.bytes(), file) != t.bytes()) return failed("too few elements");
    }
    if (file) std::fclose(file);
    if (!model.predict()) return failed("predict");
    for (const lunaria_lite::Tensor& t : model.outputs()) {
        std::printf("%s:", t.name());
        for (std::size_t j = 0; j < t.size<float>() && t.dtype() == LUNARIA_LITE_FLOAT32; ++j)
            std::printf(" %.6f", static_cast<double>(t.data<float>()[j]));
        std::printf("\n");
    }
    return 0;
}
