// Copies of what may lie in a file, so that reading it is what takes time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "checkpoint.hpp"

namespace cuzk {

// On the process's pool and the calling thread, before what else the pool is to do. The
// calling thread asks the checkpoint before each MiB that it takes; throws
// CUZK_STOPPED, and then a part of `to` is written.
void copy_at_once(uint8_t *to, const uint8_t *from, std::size_t bytes,
                  const cuzk_checkpoint &checkpoint);

} // namespace cuzk
