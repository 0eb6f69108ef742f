// Decodes the JPEGs that are named on the command line by libjpeg-turbo alone, on one thread, as often as the first
// argument says; prints pictures per second of the best round.
#include <cstdio>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
// After <cstdio>, which it needs.
#include <jpeglib.h>

namespace {

void decode(const std::string& bytes, std::vector<unsigned char>& pixels) {
    jpeg_decompress_struct info{};
    jpeg_error_mgr errors{};
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    const size_t row = size_t{info.output_width} * 3;
    pixels.resize(row * info.output_height);
    while (info.output_scanline < info.output_height) {
        JSAMPROW to = pixels.data() + row * info.output_scanline;
        jpeg_read_scanlines(&info, &to, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<std::string> files;
    for (int i = 2; i < count; ++i) {
        std::ifstream file(arguments[i], std::ios::binary);
        files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    double best = 0;
    std::vector<unsigned char> pixels;
    for (int round = 0; round < std::atoi(arguments[1]); ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (const std::string& bytes : files) decode(bytes, pixels);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        best = std::max(best, static_cast<double>(files.size()) / took.count());
    }
    std::printf("%.1f\n", best);
}
