// Questions to a checkpoint, for calls that wait for a device or for other callers.
#pragma once

#include <chrono>

#include "status.hpp"

namespace cuzk {

// The time between two questions.
constexpr std::chrono::milliseconds kCheckpointEvery(1);

// Throws CUZK_STOPPED if the checkpoint says to stop.
inline void pass(const cuzk_checkpoint &checkpoint) {
    if (checkpoint.pass != nullptr && checkpoint.pass(checkpoint.context) == 0) {
        throw Error(CUZK_STOPPED, "the proof was stopped");
    }
}

} // namespace cuzk
