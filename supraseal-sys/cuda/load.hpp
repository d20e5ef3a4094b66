// Loading kernels before they are needed.
//
// A driver loads a kernel when it is first launched. It reads the kernel's code,
// compiles it if there is only PTX for the card, takes memory, and may wait for all
// that runs. Here that happens while a device starts: each kernel is launched once,
// on a stream whose word tells it to do nothing.
#pragma once

#include "launch.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// Launches one block of each.
template <class... K> Error load(Stream stream) {
    Error error = OK;
    ((error = error == OK ? launch(K{}, 1, stream) : error), ...);
    return error;
}

// By file. `load_kernels` calls them all.
Error load_evaluation(Stream stream);
Error load_quotient(Stream stream);
Error load_decoding(Stream stream);
Error load_g1(Stream stream);
Error load_g2(Stream stream);

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
