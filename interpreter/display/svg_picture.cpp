#include "interpreter/display/svg_picture.h"

#include <dlfcn.h>

#include <cmath>
#include <memory>

#include "core/base/address_space.h"
#include "core/base/error.h"

namespace lunaria {

namespace {

// The functions of librsvg, cairo and GLib that are used, with the relevant parts of their types.
struct GError {
    uint32_t domain;
    int code;
    char* message;
};
struct RsvgRectangle {
    double x, y, width, height;
};
struct RsvgHandle;
struct CairoSurface;
struct Cairo;
constexpr int kArgb32 = 0, kCairoSuccess = 0;
constexpr double kLongestSide = 16384;

class Library {
  public:
    RsvgHandle* (*open)(const unsigned char*, size_t, GError**);
    int (*size)(RsvgHandle*, double*, double*);
    int (*render)(RsvgHandle*, Cairo*, const RsvgRectangle*, GError**);
    void (*unref)(void*);
    void (*free_error)(GError*);
    CairoSurface* (*new_surface)(int, int, int);
    int (*surface_status)(CairoSurface*);
    Cairo* (*new_cairo)(CairoSurface*);
    void (*flush)(CairoSurface*);
    unsigned char* (*data)(CairoSurface*);
    int (*stride)(CairoSurface*);
    void (*destroy_cairo)(Cairo*);
    void (*destroy_surface)(CairoSurface*);
    bool complete = true;

    Library() {
        void* rsvg = load("librsvg-2.so.2");
        void* cairo = load("libcairo.so.2");
        void* gobject = load("libgobject-2.0.so.0");
        void* glib = load("libglib-2.0.so.0");
        find(rsvg, "rsvg_handle_new_from_data", open);
        find(rsvg, "rsvg_handle_get_intrinsic_size_in_pixels", size);
        find(rsvg, "rsvg_handle_render_document", render);
        find(gobject, "g_object_unref", unref);
        find(glib, "g_error_free", free_error);
        find(cairo, "cairo_image_surface_create", new_surface);
        find(cairo, "cairo_surface_status", surface_status);
        find(cairo, "cairo_create", new_cairo);
        find(cairo, "cairo_surface_flush", flush);
        find(cairo, "cairo_image_surface_get_data", data);
        find(cairo, "cairo_image_surface_get_stride", stride);
        find(cairo, "cairo_destroy", destroy_cairo);
        find(cairo, "cairo_surface_destroy", destroy_surface);
    }

  private:
    // Never closed: GLib's types stay registered for the life of the process.
    static void* load(const char* name) {
        constexpr size_t kRoom = size_t{96} << 20;
        std::string why;
        return open_library(name, RTLD_NOW | RTLD_LOCAL, kRoom, why);
    }
    template <class F>
    void find(void* library, const char* name, F& function) {
        function = library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
        complete = complete && function;
    }
};

const Library& library() {
    static const Library loaded;
    return loaded;
}

template <class T, class F>
std::unique_ptr<T, F> owned(T* pointer, F destroy) {
    return {pointer, destroy};
}

Error failure(const Library& lib, GError* error) {
    const std::string message = error && error->message ? error->message : "it cannot be read";
    if (error) lib.free_error(error);
    return value_error("svg", "this is no drawing that librsvg can show: " + message);
}

// Cairo's pixels are 32-bit words, alpha first, with the colours multiplied by it.
std::string straight(const unsigned char* data, int stride, int64_t width, int64_t height) {
    std::string pixels(static_cast<size_t>(width * height * 4), '\0');
    auto* to = reinterpret_cast<unsigned char*>(pixels.data());
    for (int64_t y = 0; y < height; ++y) {
        const auto* from = reinterpret_cast<const uint32_t*>(data + y * stride);
        for (int64_t x = 0; x < width; ++x, to += 4) {
            const uint32_t word = from[x], alpha = word >> 24;
            for (int c = 0; c < 3; ++c) {
                const uint32_t color = word >> (16 - 8 * c) & 255;
                to[c] = static_cast<unsigned char>(alpha ? (color * 255 + alpha / 2) / alpha : 0);
            }
            to[3] = static_cast<unsigned char>(alpha);
        }
    }
    return pixels;
}

}  // namespace

bool can_draw_svg() { return library().complete; }

Picture draw_svg(std::string_view svg, double scale) {
    if (!can_draw_svg())
        throw state_error("png", "drawing pixels needs librsvg, which is not installed")
            .hint("on Debian: apt install librsvg2-2 fonts-dejavu-core; .svg and .html files need nothing");
    const Library& lib = library();
    if (!(scale > 0 && scale <= 100)) throw value_error("png", str("scale must be between 0 and 100, got ", scale));
    GError* error = nullptr;
    const auto handle = owned(lib.open(reinterpret_cast<const unsigned char*>(svg.data()), svg.size(), &error),
                              [&lib](RsvgHandle* h) { lib.unref(h); });
    if (!handle) throw failure(lib, error);
    double width = 0, height = 0;
    if (!lib.size(handle.get(), &width, &height) || !(width > 0 && height > 0))
        throw value_error("svg", "the drawing does not say its width and height in pixels");
    width = std::ceil(width * scale);
    height = std::ceil(height * scale);
    if (width > kLongestSide || height > kLongestSide)
        throw value_error("svg", str("a picture of ", width, " by ", height,
                                     " pixels is too large; the longest side is ", kLongestSide));
    const auto surface = owned(lib.new_surface(kArgb32, static_cast<int>(width), static_cast<int>(height)),
                               [&lib](CairoSurface* s) { lib.destroy_surface(s); });
    if (lib.surface_status(surface.get()) != kCairoSuccess) throw memory_error("svg", "no memory for the picture");
    const auto cairo = owned(lib.new_cairo(surface.get()), [&lib](Cairo* c) { lib.destroy_cairo(c); });
    const RsvgRectangle all{0, 0, width, height};
    if (!lib.render(handle.get(), cairo.get(), &all, &error)) throw failure(lib, error);
    lib.flush(surface.get());
    Picture picture{static_cast<int64_t>(width), static_cast<int64_t>(height), {}};
    picture.pixels = straight(lib.data(surface.get()), lib.stride(surface.get()), picture.width, picture.height);
    return picture;
}

}  // namespace lunaria
