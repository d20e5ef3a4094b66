#include "status.hpp"

#include <cstring>
#include <new>

namespace cuzk {
namespace {

cuzk_status make_status(int32_t code, const char *message) noexcept {
    cuzk_status status;
    std::memset(&status, 0, sizeof(status));
    status.code = code;
    // One byte short of the array: the memset above left the terminator.
    std::strncpy(status.message, message, sizeof(status.message) - 1);
    return status;
}

} // namespace

cuzk_status status_ok() noexcept {
    return make_status(CUZK_OK, "");
}

cuzk_status status_of_current_exception() noexcept {
    try {
        throw;
    } catch (const Error &error) {
        return make_status(error.code(), error.what());
    } catch (const std::bad_alloc &error) {
        return make_status(CUZK_OUT_OF_MEMORY, error.what());
    } catch (const std::exception &error) {
        return make_status(CUZK_EXCEPTION, error.what());
    } catch (...) {
        return make_status(CUZK_UNKNOWN_EXCEPTION, "a value that is not a std::exception was thrown");
    }
}

} // namespace cuzk
