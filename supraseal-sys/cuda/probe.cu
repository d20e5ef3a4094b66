// The smallest kernel: whether a device runs this program's device code at all.
// A driver that is too old, or a card that none of the architectures fits,
// shows here and not in the middle of a proof.
#include <cstdint>

namespace cuzk {

__global__ void probe(uint32_t *out, uint32_t value) {
    *out = value ^ 0xffffffffU;
}

// *out = ~value, in the order of the stream. The launch's error is left to
// cudaGetLastError.
void launch_probe(uint32_t *out, uint32_t value, cudaStream_t stream) {
    probe<<<1, 1, 0, stream>>>(out, value);
}

} // namespace cuzk
