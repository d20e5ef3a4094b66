// Where a call that waits, for a device or for others, asks whether to go on.
#pragma once

#include <chrono>

#include "status.hpp"

namespace cuzk {

// How often it asks.
constexpr std::chrono::milliseconds kCheckpointEvery(1);

// Throws CUZK_STOPPED if the checkpoint says so.
inline void pass(const cuzk_checkpoint &checkpoint) {
    if (checkpoint.pass != nullptr && checkpoint.pass(checkpoint.context) == 0) {
        throw Error(CUZK_STOPPED, "the proof was stopped");
    }
}

} // namespace cuzk
