#include "copy.hpp"

#include <algorithm>
#include <cstring>

#include "pool.hpp"

namespace cuzk {

void copy_at_once(uint8_t *to, const uint8_t *from, std::size_t bytes,
                  const cuzk_checkpoint &checkpoint) {
    constexpr std::size_t kTask = std::size_t{1} << 20;
    Pool &pool = shared_pool();
    pool.for_each_at_once((bytes + kTask - 1) / kTask, [&](std::size_t task, std::size_t worker) {
        if (worker == pool.size()) {
            pass(checkpoint);
        }
        const std::size_t begin = task * kTask;
        std::memcpy(to + begin, from + begin, std::min(kTask, bytes - begin));
    });
}

} // namespace cuzk
