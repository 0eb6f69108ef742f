// Files written by NumPy, PyTorch, MindSpore and the safetensors library must read as the manifest says, and every file
// that is marked for refusal must be refused with a message that names it.
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/io/idx.h"
#include "core/io/npz.h"
#include "core/io/safetensors.h"
#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using nlohmann::json;
using test::kSamples;

const json& manifest() {
    static const json files = json::parse(std::ifstream(kSamples + "manifest.json")).at("files");
    return files;
}

void expect_as_written(const std::string& name, const Tensor& tensor, const json& expected) {
    SCOPED_TRACE(name);
    EXPECT_EQ(name_of(tensor.dtype()), expected.at("dtype").get<std::string>());
    std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    EXPECT_EQ(shape, expected.at("shape").get<std::vector<int64_t>>());
    EXPECT_EQ(test::sha256(test::bytes_of(tensor)), expected.at("sha256_le").get<std::string>());
    if (!expected.contains("values")) return;
    for (int64_t i = 0; i < tensor.size(); ++i) {
        const json& value = expected["values"][static_cast<size_t>(i)];
        if (value.is_number_integer()) {
            EXPECT_EQ(tensor.integer_at(i), value.get<int64_t>());
        } else if (value.is_number_float()) {
            EXPECT_EQ(tensor.at(i), value.get<double>());
        }
    }
}

void expect_all(const std::vector<NamedTensor>& tensors, const json& expected) {
    EXPECT_EQ(tensors.size(), expected.size());
    for (const auto& [name, tensor] : tensors) {
        ASSERT_TRUE(expected.contains(name)) << name;
        expect_as_written(name, tensor, expected[name]);
    }
}

void read_any(const std::string& path) {
    if (path.ends_with(".npy"))
        read_npy(path);
    else if (path.ends_with(".npz") || path.ends_with(".pt"))
        read_npz(path);
    else if (path.ends_with(".safetensors"))
        read_safetensors(path);
    else
        read_idx(path);
}

bool is_ours(const std::string& path) {
    return path.starts_with("npy/") || path.starts_with("safetensors/") || path.starts_with("idx/") ||
           path.starts_with("torch/") || path == "ckpt/ms.safetensors";
}

TEST(Samples, read_as_the_manifest_says) {
    int read = 0;
    for (const json& file : manifest()) {
        std::string path = file.at("path");
        if (!is_ours(path) || path.starts_with("idx/") || file.contains("reject")) continue;
        SCOPED_TRACE(path);
        const json& expected = file.at("expect");
        if (path.ends_with(".npy"))
            expect_as_written(path, read_npy(kSamples + path), expected);
        else if (path.ends_with(".npz"))
            expect_all(read_npz(kSamples + path), expected);
        else
            expect_all(read_safetensors(kSamples + path), expected);
        ++read;
    }
    EXPECT_GE(read, 16);
}

TEST(Samples, that_must_be_refused_are_refused_by_name) {
    int refused = 0;
    for (const json& file : manifest()) {
        std::string path = file.at("path");
        if (!is_ours(path) || !file.contains("reject")) continue;
        SCOPED_TRACE(path);
        test::error_of([&] { read_any(kSamples + path); }, kSamples + path);
        ++refused;
    }
    EXPECT_GE(refused, 7);
}

TEST(Samples, a_pickle_is_refused_with_the_safe_way_out) {
    test::error_of([] { read_npy(kSamples + "npy/REJECT_object.npy"); }, "object");
    test::error_of([] { read_npz(kSamples + "torch/state.pt"); }, "safetensors");
}

TEST(Samples, a_bad_member_does_not_spoil_the_good_one) {
    NpzFile file(kSamples + "npy/REJECT_object_member.npz");
    EXPECT_GT(file.read("ok").tensor().size(), 0);
    test::error_of([&] { file.read("bad"); }, "'bad.npy'");
}

TEST(Samples, idx_images_read_alike_plain_and_zipped) {
    Tensor images = read_idx(kSamples + "idx/images-idx3-ubyte");
    Tensor zipped = read_idx(kSamples + "idx/images-idx3-ubyte.gz");
    EXPECT_EQ(images.shape(), (Shape{200, 28, 28}));
    EXPECT_EQ(test::bytes_of(images), test::bytes_of(zipped));
    int64_t sum = 0;
    for (int64_t i = 0; i < images.size(); ++i) sum += images.data<uint8_t>()[i];
    EXPECT_EQ(sum, 11795585);
    Tensor labels = read_idx(kSamples + "idx/labels-idx1-ubyte.gz");
    const int first[] = {9, 2, 1, 1, 6, 1, 4, 6, 5, 7};
    for (int i = 0; i < 10; ++i) EXPECT_EQ(labels.integer_at(i), first[i]);
}

// A file that is cut or has a byte changed is an error or, where the format has no checksum, other values; never more.
TEST(Samples, damaged_files_never_do_worse_than_fail) {
    for (const json& file : manifest()) {
        std::string path = file.at("path");
        if (!is_ours(path) || file.at("bytes") > 3000) continue;
        std::string bytes = read_file(kSamples + path);
        auto attempt = [&](const std::string& damaged) {
            auto source = [&] { return memory_source(path, damaged); };
            try {
                if (path.ends_with(".npy"))
                    read_npy(*source());
                else if (path.ends_with(".npz") || path.ends_with(".pt"))
                    NpzFile(source()).read_all();
                else if (path.ends_with(".safetensors"))
                    SafetensorsFile(source()).read_all();
                else
                    read_idx(*source());
            } catch (const Error& error) {
                EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
                return true;
            }
            return false;
        };
        for (size_t cut = 0; cut < bytes.size(); ++cut)
            EXPECT_TRUE(attempt(bytes.substr(0, cut))) << path << " cut to " << cut << " bytes is accepted";
        for (size_t at = 0; at < bytes.size(); ++at)
            for (unsigned char flip : {0x01, 0x80, 0xff}) {
                std::string damaged = bytes;
                damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ flip);
                attempt(damaged);
            }
    }
}

}  // namespace
}  // namespace lunaria
