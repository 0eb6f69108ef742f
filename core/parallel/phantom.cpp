#include "core/parallel/phantom.h"

#include <cstring>

#include "core/parallel/combine.h"

namespace lunaria::parallel {

namespace {

// Where the pieces of all ranks begin, in elements, and how long they are.
class Pieces {
  public:
    explicit Pieces(const Request& request) : request_(request) {}
    int64_t size(int place) const { return request_.counts.empty() ? request_.count : request_.counts[place]; }
    int64_t begin(int place) const {
        int64_t sum = 0;
        for (int i = 0; i < place; ++i) sum += size(i);
        return sum;
    }

  private:
    const Request& request_;
};

class Answer {
  public:
    explicit Answer(const Request& request)
        : request_(request),
          pieces_(request),
          n_(request.group->size()),
          me_(request.group->rank()),
          width_(static_cast<int64_t>(size_of(request.dtype))),
          in_(static_cast<const char*>(request.in)),
          out_(static_cast<char*>(request.out)) {}

    void give() {
        const bool is_root = me_ == request_.root;
        switch (request_.operation) {
            case Collective::all_reduce:
                return combine_copies(in_, request_.count);
            case Collective::reduce:
                if (is_root) combine_copies(in_, request_.count);
                return;
            case Collective::reduce_scatter:
                return combine_copies(in_ + pieces_.begin(me_) * width_, pieces_.size(me_));
            case Collective::gather:
            case Collective::all_gather:
                for (int i = 0; (is_root || request_.operation == Collective::all_gather) && i < n_; ++i)
                    repeat(pieces_.begin(i), pieces_.size(i), in_, pieces_.size(me_));
                return;
            case Collective::scatter:
                if (is_root) return repeat(0, pieces_.size(me_), in_ + pieces_.begin(me_) * width_, pieces_.size(me_));
                return repeat(0, pieces_.size(me_), nullptr, 0);
            case Collective::broadcast:
                return repeat(0, request_.count, in_, request_.count);
            case Collective::all_to_all:
                return repeat(0, n_ * request_.count, in_, n_ * request_.count);
            case Collective::all_to_all_v:
                return exchange();
            case Collective::recv:
                return repeat(0, request_.count, nullptr, 0);
            case Collective::send:
            case Collective::barrier:
                return;
        }
    }

  private:
    void combine_copies(const char* own, int64_t count) {
        const std::vector<const void*> copies(static_cast<size_t>(n_), own);
        combine(request_.combine, request_.dtype, copies, out_, count);
    }

    // Fills `count` elements of the result from `begin` on with those of `from`, again and again; zeros if there are
    // none.
    void repeat(int64_t begin, int64_t count, const char* from, int64_t available) {
        char* to = out_ + begin * width_;
        if (from == to || count == 0) return;
        if (available == 0) {
            std::memset(to, 0, static_cast<size_t>(count * width_));
            return;
        }
        for (int64_t done = 0; done < count; done += available)
            std::memmove(to + done * width_, from, static_cast<size_t>(std::min(available, count - done) * width_));
    }

    void exchange() {
        int64_t from = 0, own = 0, to = 0;
        for (int i = 0; i < me_; ++i) own += request_.counts[i];
        for (int i = 0; i < n_; ++i) {
            repeat(to, request_.receive_counts[i], in_ + (i == me_ ? own : from) * width_, request_.counts[i]);
            from += request_.counts[i];
            to += request_.receive_counts[i];
        }
    }

    const Request& request_;
    const Pieces pieces_;
    const int n_, me_;
    const int64_t width_;
    const char* in_;
    char* out_;
};

class Done : public Transfer {
  public:
    bool advance() override { return true; }
};

}  // namespace

void PhantomCommunicator::execute(const Request& request, const Mark&) { Answer(request).give(); }

std::unique_ptr<Transfer> PhantomCommunicator::post(const Request& request, const Mark&) {
    Answer(request).give();
    return std::make_unique<Done>();
}

}  // namespace lunaria::parallel
