// Requests of every kind to an engine, compared with what they mean.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/parallel/combine.h"
#include "core/parallel/communicator.h"

namespace lunaria::parallel {

class EngineChecks {
  public:
    // All ranks do the same with the same seed.
    EngineChecks(Communicator& communicator, uint32_t seed) : c_(communicator), random_(seed) {}

    void run(int requests) {
        collectives(requests);
        transfers();
    }

    void collectives(int requests) {
        for (int i = 0; i < requests; ++i) {
            choose_group();
            if (group_->rank() >= 0) {
                one();
            } else {
                one_without();
            }
        }
    }

  private:
    using Bytes = std::vector<unsigned char>;

    int64_t number(int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random_); }

    void choose_group() {
        std::vector<int> members(static_cast<size_t>(c_.ranks()));
        std::iota(members.begin(), members.end(), 0);
        for (size_t i = members.size(); i > 1; --i)
            std::swap(members[i - 1], members[static_cast<size_t>(number(static_cast<int64_t>(i) - 1))]);
        members.resize(static_cast<size_t>(number(c_.ranks() - 1)) + 1);
        group_ = number(2) == 0 ? &c_.world() : &c_.group(members);
    }

    // The chosen request: all ranks of the world draw the same numbers.
    struct Chosen {
        Collective operation;
        DType dtype;
        Combine combine;
        int64_t count;
        int root;
        uint32_t salt;
        std::vector<int64_t> counts;  // empty: equal pieces
        std::vector<int64_t> matrix;  // of all_to_all_v: [from * n + to]
    };
    Chosen choose() {
        constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f64, DType::i32};
        constexpr int64_t kSizes[] = {0, 1, 7, 500, 5000, 70'000};
        Chosen r;
        r.operation = static_cast<Collective>(number(9));
        r.dtype = kTypes[number(3)];
        r.combine = static_cast<Combine>(number(3));
        r.count = kSizes[number(5)];
        const int n = group_->size();
        r.root = static_cast<int>(number(n - 1));
        r.salt = static_cast<uint32_t>(number(1 << 20));
        const bool uneven = number(2) == 0;
        for (int i = 0; i < n; ++i) r.counts.push_back(number(r.count));
        for (int i = 0; i < n * n; ++i) r.matrix.push_back(number(r.count));
        const bool may = r.operation == Collective::all_gather || r.operation == Collective::gather ||
                         r.operation == Collective::scatter || r.operation == Collective::reduce_scatter;
        if (!may || !uneven) r.counts.clear();
        return r;
    }

    Bytes data(const Chosen& r, int place, int64_t count) const {
        std::minstd_rand random(r.salt * 64 + static_cast<uint32_t>(group_->world_rank(place)) + 1);
        Bytes bytes(static_cast<size_t>(count) * size_of(r.dtype));
        for (int64_t i = 0; i < count; ++i) {
            const double x = static_cast<double>(random() % 2000) / 7.0 - 140;
            unsigned char* to = bytes.data() + static_cast<size_t>(i) * size_of(r.dtype);
            if (r.dtype == DType::f32) {
                const auto v = static_cast<float>(x);
                std::memcpy(to, &v, sizeof v);
            } else if (r.dtype == DType::f64) {
                std::memcpy(to, &x, sizeof x);
            } else if (r.dtype == DType::i32) {
                const auto v = static_cast<int32_t>(x);
                std::memcpy(to, &v, sizeof v);
            } else {
                const auto v = static_cast<float>(x);
                std::memcpy(to, reinterpret_cast<const unsigned char*>(&v) + 2, 2);
            }
        }
        return bytes;
    }

    void one_without() {
        choose();
        number(3);
    }

    void one() {
        const Chosen r = choose();
        const int n = group_->size(), me = group_->rank();
        const auto width = static_cast<int64_t>(size_of(r.dtype));
        const std::vector<int64_t> pieces =
            r.counts.empty() ? std::vector<int64_t>(static_cast<size_t>(n), r.count) : r.counts;
        const int64_t all = std::accumulate(pieces.begin(), pieces.end(), int64_t{0});
        auto offset = [&](int place) { return std::accumulate(pieces.begin(), pieces.begin() + place, int64_t{0}); };
        auto part = [&](const Bytes& from, int64_t begin, int64_t count) {
            return Bytes(from.begin() + begin * width, from.begin() + (begin + count) * width);
        };
        auto combined = [&](int64_t count) {
            std::vector<Bytes> inputs;
            std::vector<const void*> parts;
            for (int i = 0; i < n; ++i) inputs.push_back(data(r, i, count));
            for (const Bytes& input : inputs) parts.push_back(input.data());
            Bytes out(static_cast<size_t>(count * width));
            combine(r.combine, r.dtype, parts, out.data(), count);
            return out;
        };

        Request request;
        request.operation = r.operation;
        request.group = group_;
        request.dtype = r.dtype;
        request.combine = r.combine;
        request.count = r.counts.empty() ? r.count : 0;
        request.root = r.root;
        request.counts = r.counts;
        Bytes in, expected;
        bool gets = true;
        std::vector<int64_t> leaves, comes;
        switch (r.operation) {
            case Collective::all_reduce:
            case Collective::reduce:
                in = data(r, me, r.count);
                expected = combined(r.count);
                gets = r.operation == Collective::all_reduce || me == r.root;
                break;
            case Collective::reduce_scatter:
                in = data(r, me, all);
                expected = part(combined(all), offset(me), pieces[me]);
                break;
            case Collective::all_gather:
            case Collective::gather:
                in = data(r, me, pieces[me]);
                for (int i = 0; i < n; ++i) {
                    const Bytes piece = data(r, i, pieces[i]);
                    expected.insert(expected.end(), piece.begin(), piece.end());
                }
                gets = r.operation == Collective::all_gather || me == r.root;
                break;
            case Collective::scatter:
                in = data(r, me, all);
                expected = part(data(r, r.root, all), offset(me), pieces[me]);
                break;
            case Collective::broadcast:
                in = data(r, me, r.count);
                expected = data(r, r.root, r.count);
                break;
            case Collective::all_to_all:
                in = data(r, me, r.count * n);
                for (int i = 0; i < n; ++i) {
                    const Bytes piece = part(data(r, i, r.count * n), me * r.count, r.count);
                    expected.insert(expected.end(), piece.begin(), piece.end());
                }
                break;
            case Collective::all_to_all_v: {
                for (int i = 0; i < n; ++i) {
                    leaves.push_back(r.matrix[me * n + i]);
                    comes.push_back(r.matrix[i * n + me]);
                }
                in = data(r, me, std::accumulate(leaves.begin(), leaves.end(), int64_t{0}));
                for (int i = 0; i < n; ++i) {
                    const auto row = r.matrix.begin() + i * n;
                    const int64_t begin = std::accumulate(row, row + me, int64_t{0});
                    const Bytes piece = part(data(r, i, std::accumulate(row, row + n, int64_t{0})), begin, row[me]);
                    expected.insert(expected.end(), piece.begin(), piece.end());
                }
                request.count = 0;
                request.counts = leaves;
                request.receive_counts = comes;
                break;
            }
            default:
                break;
        }
        Bytes out(expected.size(), 0xee);
        request.in = in.data();
        request.out = gets ? out.data() : nullptr;
        if (number(3) == 0)
            c_.start(request).wait();
        else
            c_.run(request);
        if (gets) {
            ASSERT_EQ(out, expected) << name_of(r.operation) << " of " << r.count << " by " << n;
        }
    }

    // To the next rank and from the one before, several at once.
    void transfers() {
        const int n = c_.ranks(), me = c_.rank();
        if (n == 1) return;
        for (const int64_t count : {0, 1, 3000, 300'000}) {
            std::vector<std::vector<int32_t>> sent, got;
            for (int i = 0; i < 3; ++i) {
                sent.emplace_back(static_cast<size_t>(count), me * 10 + i);
                got.emplace_back(static_cast<size_t>(count), -1);
            }
            std::vector<Request> requests;
            for (int i = 0; i < 3; ++i) {
                Request r;
                r.operation = Collective::recv;
                r.dtype = DType::i32;
                r.count = count;
                r.out = got[static_cast<size_t>(i)].data();
                r.root = (me + n - 1) % n;
                r.tag = i / 2;  // two of them with the same tag: in order
                requests.push_back(r);
            }
            for (int i = 0; i < 3; ++i) {
                Request r;
                r.operation = Collective::send;
                r.dtype = DType::i32;
                r.count = count;
                r.in = sent[static_cast<size_t>(i)].data();
                r.root = (me + 1) % n;
                r.tag = i / 2;
                requests.push_back(r);
            }
            c_.run_together(requests);
            for (int i = 0; i < 3; ++i)
                ASSERT_EQ(got[static_cast<size_t>(i)],
                          std::vector<int32_t>(static_cast<size_t>(count), (me + n - 1) % n * 10 + i));
        }
    }

    Communicator& c_;
    std::mt19937 random_;
    const Group* group_ = nullptr;
};

}  // namespace lunaria::parallel
