#include "core/io/stream.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

#include "core/base/interrupt.h"

namespace lunaria {
namespace {

constexpr size_t kChunk = size_t{1} << 18;
constexpr uint64_t kMostRatio = 1032;
constexpr int kRaw = -15, kGzip = 15 + 16;  // zlib's window bits, which also state the wrapper

uint64_t times_ratio(uint64_t stored) {
    constexpr uint64_t limit = std::numeric_limits<uint64_t>::max() / (2 * kMostRatio);
    return stored > limit ? std::numeric_limits<uint64_t>::max() : stored * kMostRatio + kMostRatio;
}

uint32_t checksum(const void* bytes, size_t count, uint32_t start) {
    return static_cast<uint32_t>(crc32_z(start, static_cast<const Bytef*>(bytes), count));
}

// Bytes as they are; compared with a checksum when they are a member of an archive.
class PlainStream final : public Stream {
  public:
    PlainStream(std::string name, const Source& source, uint64_t offset, uint64_t size)
        : Stream(std::move(name)), source_(source), offset_(offset), left_(size) {}
    void check(uint32_t checksum) {
        checked_ = true;
        expected_ = checksum;
    }

    void read(void* to, size_t bytes) override {
        if (bytes > left_) throw error(str("truncated: ", bytes, " more bytes are expected, ", left_, " are there"));
        source_.read(offset_, to, bytes);
        offset_ += bytes;
        left_ -= bytes;
        if (checked_) actual_ = checksum(to, bytes, actual_);
    }
    uint64_t most() const override { return left_; }
    void finish() override {
        if (left_ > 0) throw error(str("corrupt: ", left_, " bytes follow the data"));
        if (checked_ && actual_ != expected_) throw error("corrupt: the CRC checksum of the data is wrong");
    }

  private:
    const Source& source_;
    uint64_t offset_, left_;
    bool checked_ = false;
    uint32_t expected_ = 0, actual_ = 0;
};

class InflateStream final : public Stream {
  public:
    InflateStream(std::string name, const Source& source, uint64_t offset, uint64_t stored, int window)
        : Stream(std::move(name)), source_(source), offset_(offset), left_(stored), gzip_(window == kGzip) {
        if (inflateInit2(&state_, window) != Z_OK) throw std::bad_alloc();
    }
    ~InflateStream() override { inflateEnd(&state_); }
    InflateStream(const InflateStream&) = delete;
    InflateStream& operator=(const InflateStream&) = delete;

    void check(uint64_t size, uint32_t checksum) {
        checked_ = true;
        size_ = size;
        expected_ = checksum;
    }

    void read(void* to, size_t bytes) override {
        char* out = static_cast<char*>(to);
        for (size_t done = 0; done < bytes;) {
            size_t got = inflate_some(out + done, bytes - done);
            if (got == 0)
                throw error(str("truncated: the compressed data ends ", bytes - done, " bytes before the data does"));
            done += got;
        }
    }
    uint64_t most() const override {
        uint64_t bound = times_ratio(left_ + state_.avail_in);
        return checked_ ? std::min(bound, size_ - std::min(size_, unpacked_)) : bound;
    }
    void finish() override {
        char more;
        if (inflate_some(&more, 1) > 0) throw error("corrupt: more data is there than the header says");
        if (checked_ && (unpacked_ != size_ || left_ + state_.avail_in > 0))
            throw error("corrupt: the compressed data has another size than the archive says");
        if (checked_ && actual_ != expected_) throw error("corrupt: the CRC checksum of the data is wrong");
    }

  private:
    // Returns zero at the end of the data only.
    size_t inflate_some(char* to, size_t bytes) {
        bytes = std::min(bytes, kChunk);
        state_.next_out = reinterpret_cast<Bytef*>(to);
        state_.avail_out = static_cast<uInt>(bytes);
        while (!ended_ && state_.avail_out == bytes) {
            poll_interrupt();
            refill();
            int result = inflate(&state_, Z_NO_FLUSH);
            if (result == Z_STREAM_END)
                end_of_part();
            else if (result == Z_BUF_ERROR ||
                     (result == Z_OK && state_.avail_in == 0 && left_ == 0 && state_.avail_out == bytes))
                throw error("truncated: the compressed data breaks off");
            else if (result != Z_OK)
                throw error(str("corrupt: the compressed data cannot be unpacked (",
                                state_.msg ? state_.msg : "wrong format", ")"));
        }
        size_t got = bytes - state_.avail_out;
        unpacked_ += got;
        if (checked_) actual_ = checksum(to, got, actual_);
        return got;
    }

    void refill() {
        if (state_.avail_in > 0 || left_ == 0) return;
        input_.resize(static_cast<size_t>(std::min<uint64_t>(left_, kChunk)));
        source_.read(offset_, input_.data(), input_.size());
        offset_ += input_.size();
        left_ -= input_.size();
        state_.next_in = reinterpret_cast<Bytef*>(input_.data());
        state_.avail_in = static_cast<uInt>(input_.size());
    }

    // A gzip file may be several of them, one after another.
    void end_of_part() {
        refill();
        if (gzip_ && state_.avail_in > 0)
            inflateReset(&state_);
        else
            ended_ = true;
    }

    const Source& source_;
    uint64_t offset_, left_;
    bool gzip_, ended_ = false, checked_ = false;
    uint64_t size_ = 0, unpacked_ = 0;
    uint32_t expected_ = 0, actual_ = 0;
    std::vector<char> input_;
    z_stream state_{};
};

}  // namespace

std::unique_ptr<Stream> plain_stream(const Source& source) {
    return std::make_unique<PlainStream>(source.name(), source, 0, source.size());
}

std::unique_ptr<Stream> plain_stream(const Source& source, std::string name, uint64_t offset, uint64_t size) {
    return std::make_unique<PlainStream>(std::move(name), source, offset, size);
}

std::unique_ptr<Stream> gzip_stream(const Source& source) {
    return std::make_unique<InflateStream>(source.name(), source, 0, source.size(), kGzip);
}

std::unique_ptr<Stream> member_stream(const Source& source, const Stretch& member) {
    if (member.deflated) {
        auto stream = std::make_unique<InflateStream>(member.name, source, member.offset, member.stored, kRaw);
        stream->check(member.size, member.checksum);
        return stream;
    }
    auto stream = std::make_unique<PlainStream>(member.name, source, member.offset, member.stored);
    stream->check(member.checksum);
    return stream;
}

std::string deflate_bytes(std::string_view bytes) {
    z_stream state{};
    if (deflateInit2(&state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRaw, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::bad_alloc();
    std::string out;
    std::vector<char> block(kChunk);
    size_t taken = 0;
    int result = Z_OK;
    while (result != Z_STREAM_END) {
        if (interrupt_requested()) break;
        if (state.avail_in == 0 && taken < bytes.size()) {
            size_t part = std::min(bytes.size() - taken, kChunk);
            // zlib's interface predates const; it does not write to its input.
            state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
            state.avail_in = static_cast<uInt>(part);
            taken += part;
        }
        state.next_out = reinterpret_cast<Bytef*>(block.data());
        state.avail_out = static_cast<uInt>(block.size());
        result = deflate(&state, taken == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
        out.append(block.data(), block.size() - state.avail_out);
    }
    deflateEnd(&state);
    poll_interrupt();
    return out;
}

uint32_t crc32_of(std::string_view bytes, uint32_t start) {
    in_ranges(static_cast<int64_t>(bytes.size()), int64_t{1} << 22, [&](int64_t begin, int64_t end) {
        start = checksum(bytes.data() + begin, static_cast<size_t>(end - begin), start);
    });
    return start;
}

}  // namespace lunaria
