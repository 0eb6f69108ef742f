#include <array>
#include <string>

#include "core/base/own_library.h"
#include "core/federated/client/connection.h"

namespace lunaria::federated::client {

bool may_pass(Fault fault) {
    switch (fault) {
        case Fault::unreachable:
        case Fault::late:
        case Fault::dropped:
            return true;
        default:
            return false;
    }
}

std::string_view words_of(Fault fault) {
    switch (fault) {
        case Fault::none:
            return "nothing is wrong";
        case Fault::unreachable:
            return "there is no connection to the server";
        case Fault::late:
            return "the server does not answer in time";
        case Fault::dropped:
            return "the connection ended before the reply was complete";
        case Fault::too_large:
            return "the reply is larger than the client takes";
        case Fault::certificate_expired:
            return "the server's certificate has expired";
        case Fault::certificate_not_yet:
            return "the server's certificate is not valid yet, or the clock here is slow";
        case Fault::certificate_unknown:
            return "the server's certificate is of no authority that is believed here";
        case Fault::certificate_revoked:
            return "the server's certificate was revoked";
        case Fault::certificate_other_name:
            return "the server's certificate is for another host";
        case Fault::own_certificate:
            return "the client's certificate cannot be read, or the server refuses it";
        case Fault::tls:
            return "TLS cannot be set up";
        case Fault::interrupted:
            return "interrupted";
        default:
            return "the request failed";
    }
}

std::unique_ptr<Connection> connect(const ConnectionOptions& options, const ShouldEnd& should_end,
                                    std::string& problem) {
    void* function = own_library_function("liblunaria_http_client.so", kOpenConnection, problem);
    if (!function) return nullptr;
    return std::unique_ptr<Connection>(reinterpret_cast<OpenConnection>(function)(options, should_end));
}

}  // namespace lunaria::federated::client
