#include "core/parallel/mpi.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "core/base/address_space.h"
#include "core/base/error.h"
#include "core/parallel/environment.h"
#include "core/parallel/messages.h"

namespace lunaria::parallel {

namespace {

// A handle: a pointer in OpenMPI, a number of 32 bits in MPICH, of which functions read and write the lower half.
using Handle = intptr_t;
// Room for the status of either.
struct Status {
    alignas(8) unsigned char bytes[64];
};

constexpr int kSerialized = 2;  // MPI_THREAD_SERIALIZED: calls of several threads, one at a time
constexpr int kAnyMessage = 0;

// The functions and constants of one library.
struct Mpi {
    int (*Init_thread)(int*, char***, int, int*);
    int (*Initialized)(int*);
    int (*Finalize)();
    int (*Comm_rank)(Handle, int*);
    int (*Comm_size)(Handle, int*);
    int (*Comm_dup)(Handle, Handle*);
    int (*Comm_set_errhandler)(Handle, Handle);
    int (*Isend)(const void*, int, Handle, int, int, Handle, Handle*);
    int (*Irecv)(void*, int, Handle, int, int, Handle, Handle*);
    int (*Test)(Handle*, int*, Status*);
    int (*Wait)(Handle*, Status*);
    int (*Cancel)(Handle*);
    int (*Request_free)(Handle*);
    int (*Iprobe)(int, int, Handle, int*, Status*);
    int (*Get_count)(const Status*, Handle, int*);
    int (*Error_string)(int, char*, int*);
    Handle world, byte, errors_return;
    bool is_openmpi;
};

void* open_mpi(Launcher launcher) {
    constexpr size_t kRoom = size_t{128} << 20;
    std::vector<std::string> names = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi.so"};
    // With OpenMPI's library each process that MPICH started would be alone.
    if (launcher == Launcher::mpich) names = {"libmpich.so.12", "libmpi.so.12"};
    if (const char* given = std::getenv("LUNARIA_MPI")) names = {given};
    std::string problems;
    for (const std::string& name : names) {
        // Parts that the library opens by itself look for its names among all that are known.
        std::string why;
        if (void* library = open_library(name.c_str(), RTLD_NOW | RTLD_GLOBAL, kRoom, why)) return library;
        problems += (problems.empty() ? "" : "; ") + why;
    }
    throw state_error("communication", str("no library of MPI could be opened: ", problems))
        .hint("install OpenMPI or MPICH, or name the library in LUNARIA_MPI");
}

template <class F>
void find(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (!function) throw state_error("communication", str("the library of MPI has no ", name));
}

Mpi load(Launcher launcher) {
    void* library = open_mpi(launcher);
    Mpi mpi{};
    find(library, "MPI_Init_thread", mpi.Init_thread);
    find(library, "MPI_Initialized", mpi.Initialized);
    find(library, "MPI_Finalize", mpi.Finalize);
    find(library, "MPI_Comm_rank", mpi.Comm_rank);
    find(library, "MPI_Comm_size", mpi.Comm_size);
    find(library, "MPI_Comm_dup", mpi.Comm_dup);
    find(library, "MPI_Comm_set_errhandler", mpi.Comm_set_errhandler);
    find(library, "MPI_Isend", mpi.Isend);
    find(library, "MPI_Irecv", mpi.Irecv);
    find(library, "MPI_Test", mpi.Test);
    find(library, "MPI_Wait", mpi.Wait);
    find(library, "MPI_Cancel", mpi.Cancel);
    find(library, "MPI_Request_free", mpi.Request_free);
    find(library, "MPI_Iprobe", mpi.Iprobe);
    find(library, "MPI_Get_count", mpi.Get_count);
    find(library, "MPI_Error_string", mpi.Error_string);
    if (void* world = dlsym(library, "ompi_mpi_comm_world")) {
        // OpenMPI's constants are the addresses of objects that it exports.
        mpi.is_openmpi = true;
        mpi.world = reinterpret_cast<Handle>(world);
        mpi.byte = reinterpret_cast<Handle>(dlsym(library, "ompi_mpi_byte"));
        mpi.errors_return = reinterpret_cast<Handle>(dlsym(library, "ompi_mpi_errors_return"));
        if (!mpi.byte || !mpi.errors_return)
            throw state_error("communication", "this OpenMPI does not export its constants");
    } else {
        // Those of MPICH are fixed by its binary interface, which other libraries share.
        mpi.world = 0x44000000;
        mpi.byte = 0x4c00010d;
        mpi.errors_return = 0x54000001;
    }
    return mpi;
}

class MpiTransport : public Transport {
  public:
    explicit MpiTransport(Launcher launcher) : mpi_(load(launcher)) {
        // Where ranks share processors, one that waits must give way: OpenMPI's own choice made it a thousand times
        // slower.
        setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
        int provided = 0;
        check(mpi_.Init_thread(nullptr, nullptr, kSerialized, &provided), "MPI_Init_thread");
        if (provided < kSerialized)
            throw state_error("communication", "this library of MPI allows calls of the main thread only");
        check(mpi_.Comm_rank(mpi_.world, &rank_), "MPI_Comm_rank");
        check(mpi_.Comm_size(mpi_.world, &ranks_), "MPI_Comm_size");
        for (Handle& lane : lanes_) {
            check(mpi_.Comm_dup(mpi_.world, &lane), "MPI_Comm_dup");
            check(mpi_.Comm_set_errhandler(lane, mpi_.errors_return), "MPI_Comm_set_errhandler");
        }
        losses_.resize(static_cast<size_t>(ranks_));
    }
    ~MpiTransport() override = default;

    int rank() const override { return rank_; }
    int ranks() const override { return ranks_; }
    std::string_view name() const override { return mpi_.is_openmpi ? "OpenMPI" : "MPICH"; }

    std::unique_ptr<Ticket> send(int to, Lane lane, int tag, const void* bytes, size_t count) override {
        return std::make_unique<Message>(*this, Peer{to, handle(lane), tag, true}, const_cast<void*>(bytes), count);
    }
    std::unique_ptr<Ticket> receive(int from, Lane lane, int tag, void* bytes, size_t count) override {
        return std::make_unique<Message>(*this, Peer{from, handle(lane), tag, false}, bytes, count);
    }

    std::string loss_of(int rank) override {
        std::lock_guard lock(mutex_);
        return losses_[static_cast<size_t>(rank)];
    }

    void leave(std::string_view failure) override {
        if (failure.empty()) {
            constexpr std::string_view kLeft = "has left";
            tell(kLeft);
            std::lock_guard lock(mutex_);
            // Waits for the others: by then they have ended, too, or have learned that nothing will come from here.
            mpi_.Finalize();
            return;
        }
        // A process that ends without MPI_Finalize makes mpirun end all others, which is the best that can come of it;
        // they have a moment to tell their part.
        tell(str("failed: ", failure));
    }

    void wait(int round) override {
        constexpr int kYields = 200, kLongest = 200, kLook = 16;
        if (round < kYields) {
            sched_yield();
            return;
        }
        if (round % kLook == 0) look_for_losses();
        usleep(static_cast<useconds_t>(std::min(round - kYields + 1, kLongest)));
    }

  private:
    static constexpr int kLanes = 4;  // the last one for farewells
    static constexpr int kFarewell = 512;

    struct Peer {
        int rank;
        Handle lane;
        int tag;
        bool sends;
    };

    // In pieces: counts are 32 bits wide.
    class Message : public Ticket {
      public:
        Message(MpiTransport& owner, const Peer& peer, void* bytes, size_t count) : owner_(owner), peer_(peer) {
            constexpr size_t kLongest = size_t{1} << 30;
            std::lock_guard lock(owner_.mutex_);
            for (size_t begin = 0; begin < count; begin += kLongest) {
                const int part = static_cast<int>(std::min(kLongest, count - begin));
                void* from = static_cast<char*>(bytes) + begin;
                Handle request = 0;
                const Mpi& mpi = owner_.mpi_;
                owner_.check(peer.sends ? mpi.Isend(from, part, mpi.byte, peer.rank, peer.tag, peer.lane, &request)
                                        : mpi.Irecv(from, part, mpi.byte, peer.rank, peer.tag, peer.lane, &request),
                             peer.sends ? "MPI_Isend" : "MPI_Irecv");
                pieces_.push_back({request, part});
            }
        }
        ~Message() override {
            std::lock_guard lock(owner_.mutex_);
            for (Piece& piece : pieces_) {
                Status status{};
                // Nothing may write to the memory any more. A send is left to itself: to take it back waits for the
                // other side.
                if (peer_.sends) {
                    owner_.mpi_.Request_free(&piece.request);
                } else {
                    owner_.mpi_.Cancel(&piece.request);
                    owner_.mpi_.Wait(&piece.request, &status);
                }
            }
        }
        bool is_done() override {
            std::lock_guard lock(owner_.mutex_);
            while (!pieces_.empty()) {
                int done = 0;
                Status status{};
                Piece& piece = pieces_.back();
                const int code = owner_.mpi_.Test(&piece.request, &done, &status);
                if (code != 0) {
                    pieces_.pop_back();
                    owner_.check(code, peer_.sends ? "sending" : "receiving");
                }
                if (!done) return false;
                int count = piece.count;
                if (!peer_.sends) owner_.mpi_.Get_count(&status, owner_.mpi_.byte, &count);
                const int wanted = piece.count;
                pieces_.pop_back();
                if (count != wanted)
                    throw state_error("communication", str("rank ", peer_.rank, " has sent ", count, " bytes where ",
                                                           wanted, " were expected"));
            }
            return true;
        }

      private:
        struct Piece {
            Handle request;
            int count;
        };
        MpiTransport& owner_;
        const Peer peer_;
        std::vector<Piece> pieces_;
    };

    Handle handle(Lane lane) const { return lanes_[static_cast<size_t>(lane)]; }

    void check(int code, const char* what) const {
        if (code == 0) return;
        constexpr int kLongest = 1024;
        char text[kLongest] = "";
        int size = 0;
        mpi_.Error_string(code, text, &size);
        throw state_error("communication", str(what, ": ", text));
    }

    // Farewells are small enough to be sent at once, whatever the other side does.
    void tell(std::string_view text) {
        char message[kFarewell] = "";
        text.copy(message, kFarewell - 1);
        std::lock_guard lock(mutex_);
        std::vector<Handle> requests;
        for (int other = 0; other < ranks_; ++other) {
            if (other == rank_) continue;
            Handle request = 0;
            if (mpi_.Isend(message, kFarewell, mpi_.byte, other, kAnyMessage, lanes_[kLanes - 1], &request) == 0)
                requests.push_back(request);
        }
        constexpr int kRounds = 1000;
        for (int round = 0; !requests.empty() && round < kRounds; ++round) {
            std::erase_if(requests, [&](Handle& request) {
                int done = 0;
                Status status{};
                return mpi_.Test(&request, &done, &status) != 0 || done;
            });
            if (!requests.empty()) usleep(100);
        }
    }

    void look_for_losses() {
        std::lock_guard lock(mutex_);
        for (int other = 0; other < ranks_; ++other) {
            if (other == rank_ || !losses_[static_cast<size_t>(other)].empty()) continue;
            int there = 0;
            Status status{};
            if (mpi_.Iprobe(other, kAnyMessage, lanes_[kLanes - 1], &there, &status) != 0 || !there) continue;
            char message[kFarewell + 1] = "";
            Handle request = 0;
            if (mpi_.Irecv(message, kFarewell, mpi_.byte, other, kAnyMessage, lanes_[kLanes - 1], &request) != 0)
                continue;
            mpi_.Wait(&request, &status);
            losses_[static_cast<size_t>(other)] = message;
        }
    }

    const Mpi mpi_;
    int rank_ = 0, ranks_ = 1;
    Handle lanes_[kLanes] = {};
    std::mutex mutex_;  // of calls
    std::vector<std::string> losses_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi() {
    static std::atomic<bool> joined{false};
    if (joined.exchange(true))
        throw state_error("communication",
                          "this process has been part of its MPI job already; it cannot join it again");
    return std::make_unique<MessageCommunicator>(std::make_unique<MpiTransport>(environment().launcher),
                                                 environment().job, true);
}

}  // namespace lunaria::parallel
