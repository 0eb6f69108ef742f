#include "backends/cpu/machine_code.h"

#include <elf.h>
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/loops/generator.h"
#include "core/loops/loop.h"

namespace lunaria::cpu {

namespace {

constexpr size_t kMostBytes = size_t{1} << 28;
constexpr size_t kStubBytes = 16;

// The functions that generated code may call, for arguments that its own polynomials do not cover.
struct Import {
    std::string_view name;
    const void* address;
};
template <class F>
const void* address_of(F* f) {
    return reinterpret_cast<const void*>(f);
}
std::atomic<FindLoop>& loops_of_operators() {
    static std::atomic<FindLoop> find{nullptr};
    return find;
}

// A loop of the instruction set in use, which the code was generated for. It is kept by name and address, since stubs
// refer to imports.
const Import* find_loop(std::string_view name) {
    static std::mutex mutex;
    static std::map<std::pair<std::string, const void*>, Import> known;
    const std::string_view rest = name.substr(graph::kLoopPrefix.size());
    const size_t end = rest.find('_');
    const FindLoop find = loops_of_operators().load();
    if (!find || end == std::string_view::npos) return nullptr;
    const void* address = find(rest.substr(end + 1), rest.substr(0, end));
    if (!address) return nullptr;
    const std::lock_guard lock(mutex);
    auto [at, is_new] = known.try_emplace({std::string(name), address});
    if (is_new) at->second = {at->first.first, address};
    return &at->second;
}

const Import* find_import(std::string_view name) {
    if (name.starts_with(graph::kLoopPrefix)) return find_loop(name);
    using Float = float (*)(float);
    static const Import imports[] = {{"sinf", address_of(static_cast<Float>(::sinf))},
                                     {"cosf", address_of(static_cast<Float>(::cosf))},
                                     {"tanf", address_of(static_cast<Float>(::tanf))}};
    for (const Import& import : imports)
        if (import.name == name) return &import;
    return nullptr;
}

class Loader {
  public:
    explicit Loader(std::span<const char> object) : object_(object) {}
    ~Loader() {
        if (memory_ && !kept_) munmap(memory_, bytes_);
    }
    Loader(const Loader&) = delete;

    void* run() {
        if (!read_header() || !place_sections() || !read_symbols() || !relocate()) return nullptr;
        if (mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) != 0) return nullptr;
        for (const Elf64_Sym& symbol : symbols_) {
            if (name_of(symbol) != graph::kLoopSymbol || symbol.st_shndx == SHN_UNDEF) continue;
            char* at = address(symbol);
            if (!at) return nullptr;
            kept_ = true;
            return at;
        }
        return nullptr;
    }

  private:
    // `count` items at `offset` of the file, or an empty span where it is too short for them.
    template <class T>
    std::span<const T> items(uint64_t offset, uint64_t count) const {
        if (offset > object_.size() || count > (object_.size() - offset) / sizeof(T)) return {};
        if (offset % alignof(T)) return {};
        return {reinterpret_cast<const T*>(object_.data() + offset), count};
    }

    bool read_header() {
        auto header = items<Elf64_Ehdr>(0, 1);
        if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) return false;
        const Elf64_Ehdr& h = header[0];
        if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_type != ET_REL || h.e_machine != EM_X86_64) return false;
        if (h.e_shentsize != sizeof(Elf64_Shdr)) return false;
        sections_ = items<Elf64_Shdr>(h.e_shoff, h.e_shnum);
        return !sections_.empty();
    }

    bool place_sections() {
        place_.assign(sections_.size(), SIZE_MAX);
        size_t at = 0;
        for (size_t i = 0; i < sections_.size(); ++i) {
            const Elf64_Shdr& s = sections_[i];
            if (!(s.sh_flags & SHF_ALLOC) || s.sh_size == 0) continue;
            const size_t align = s.sh_addralign ? s.sh_addralign : 1;
            if (align > 4096 || s.sh_size > kMostBytes || at > kMostBytes) return false;
            if (s.sh_type != SHT_NOBITS && items<char>(s.sh_offset, s.sh_size).empty()) return false;
            at = (at + align - 1) / align * align;
            place_[i] = at;
            at += s.sh_size;
        }
        stubs_ = (at + kStubBytes - 1) / kStubBytes * kStubBytes;
        bytes_ = stubs_ + 64 * kStubBytes;
        void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return false;
        memory_ = static_cast<char*>(memory);
        for (size_t i = 0; i < sections_.size(); ++i)
            if (place_[i] != SIZE_MAX && sections_[i].sh_type != SHT_NOBITS)
                std::memcpy(memory_ + place_[i], object_.data() + sections_[i].sh_offset, sections_[i].sh_size);
        return true;
    }

    bool read_symbols() {
        for (const Elf64_Shdr& s : sections_) {
            if (s.sh_type != SHT_SYMTAB) continue;
            symbols_ = items<Elf64_Sym>(s.sh_offset, s.sh_size / sizeof(Elf64_Sym));
            if (s.sh_link >= sections_.size()) return false;
            names_ = items<char>(sections_[s.sh_link].sh_offset, sections_[s.sh_link].sh_size);
        }
        return !symbols_.empty() && !names_.empty() && names_.back() == 0;
    }

    std::string_view name_of(const Elf64_Sym& symbol) const {
        return symbol.st_name < names_.size() ? std::string_view(names_.data() + symbol.st_name) : std::string_view();
    }

    // The address of a symbol in memory; nullptr when it is unknown.
    char* address(const Elf64_Sym& symbol) {
        if (symbol.st_shndx == SHN_UNDEF) {
            const Import* import = find_import(name_of(symbol));
            return import ? stub(*import) : nullptr;
        }
        if (symbol.st_shndx >= place_.size() || place_[symbol.st_shndx] == SIZE_MAX) return nullptr;
        if (symbol.st_value > sections_[symbol.st_shndx].sh_size) return nullptr;
        return memory_ + place_[symbol.st_shndx] + symbol.st_value;
    }

    // A jump to a function that may be further away than 32 bits reach.
    char* stub(const Import& import) {
        for (size_t i = 0; i < stub_count_; ++i)
            if (stub_of_[i] == &import) return memory_ + stubs_ + i * kStubBytes;
        if (stub_count_ == std::size(stub_of_)) return nullptr;
        stub_of_[stub_count_] = &import;
        char* at = memory_ + stubs_ + stub_count_++ * kStubBytes;
        constexpr unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};  // jmp [rip + 0]
        std::memcpy(at, jump, sizeof jump);
        std::memcpy(at + sizeof jump, &import.address, sizeof import.address);
        return at;
    }

    bool relocate() {
        for (const Elf64_Shdr& s : sections_) {
            if (s.sh_type == SHT_REL) return false;
            if (s.sh_type != SHT_RELA || s.sh_info >= place_.size() || place_[s.sh_info] == SIZE_MAX) continue;
            const Elf64_Shdr& target = sections_[s.sh_info];
            for (const Elf64_Rela& r : items<Elf64_Rela>(s.sh_offset, s.sh_size / sizeof(Elf64_Rela)))
                if (!apply(r, target, memory_ + place_[s.sh_info])) return false;
        }
        return true;
    }

    bool apply(const Elf64_Rela& r, const Elf64_Shdr& target, char* section) {
        const uint64_t index = ELF64_R_SYM(r.r_info);
        if (index >= symbols_.size()) return false;
        const char* symbol = address(symbols_[index]);
        if (!symbol) return false;
        // A damaged object may add anything: sums wrap.
        const uint64_t value = reinterpret_cast<uint64_t>(symbol) + static_cast<uint64_t>(r.r_addend);
        const uint32_t type = ELF64_R_TYPE(r.r_info);
        const size_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
        if (target.sh_size < width || r.r_offset > target.sh_size - width) return false;
        char* at = section + r.r_offset;
        const auto relative = static_cast<int64_t>(value - reinterpret_cast<uint64_t>(at));
        switch (type) {
            case R_X86_64_64:
                std::memcpy(at, &value, 8);
                return true;
            case R_X86_64_PC64:
                std::memcpy(at, &relative, 8);
                return true;
            case R_X86_64_PC32:
            case R_X86_64_PLT32: {
                const auto narrow = static_cast<int32_t>(relative);
                if (narrow != relative) return false;
                std::memcpy(at, &narrow, 4);
                return true;
            }
            default:
                return false;
        }
    }

    std::span<const char> object_;
    std::span<const Elf64_Shdr> sections_;
    std::span<const Elf64_Sym> symbols_;
    std::span<const char> names_;
    std::vector<size_t> place_;
    char* memory_ = nullptr;
    size_t bytes_ = 0, stubs_ = 0, stub_count_ = 0;
    const Import* stub_of_[64] = {};
    bool kept_ = false;
};

}  // namespace

void set_loops_of_operators(FindLoop find) { loops_of_operators() = find; }

void* load_machine_code(std::string_view object) { return Loader(object).run(); }

}  // namespace lunaria::cpu
