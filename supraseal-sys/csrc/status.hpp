// C++ failures as values: the typed error that this side throws, and the guard that
// each extern "C" body runs inside. src/status.rs turns a status into Rust's error.
//
// Invariant: no exception that is thrown inside a guard leaves it, whatever its
// type.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "../wrapper.h"

namespace cuzk {

// An exception with a status code. Any other exception is mapped by its type.
class Error : public std::runtime_error {
public:
    Error(int32_t code, const std::string &message) : std::runtime_error(message), code_(code) {}

    int32_t code() const noexcept { return code_; }

private:
    int32_t code_;
};

cuzk_status status_ok() noexcept;

// The status of the exception being handled. Only inside a catch block.
cuzk_status status_of_current_exception() noexcept;

template <class Body>
cuzk_status guard(Body &&body) noexcept {
    try {
        body();
        return status_ok();
    } catch (...) {
        return status_of_current_exception();
    }
}

} // namespace cuzk
