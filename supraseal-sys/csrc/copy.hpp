// Copies of memory that may lie in a file, so that reading the file takes most of
// the time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "checkpoint.hpp"

namespace cuzk {

// Copies on the process's pool and on the calling thread, before all other work of
// the pool. The calling thread asks the checkpoint before each MiB that it takes.
// Throws CUZK_STOPPED; a part of `to` is written then.
void copy_at_once(uint8_t *to, const uint8_t *from, std::size_t bytes,
                  const cuzk_checkpoint &checkpoint);

} // namespace cuzk
