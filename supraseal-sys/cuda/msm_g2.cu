// Sums and multi-scalar multiplications in G2.
#include "msm.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

size_t sum_g2_scratch_bytes(uint32_t words) { return sum_scratch_bytes<Fp2>(words); }

Error sum_g2(const G2Affine *bases, const Query &query, const uint64_t *bits, uint32_t words,
             void *scratch, G2Xyzz *result, Stream stream) {
    return sum(bases, query, bits, words, scratch, result, stream);
}

size_t msm_g2_scratch_bytes(uint32_t n, Windows windows) {
    return MsmScratch<Fp2>::bytes(n, windows);
}

Error msm_g2(const G2Affine *bases, const Scalars &scalars, Windows windows, void *scratch,
             G2Xyzz *sums, Stream stream) {
    return msm(bases, scalars, windows, scratch, sums, stream);
}

G2Jacobian finish_g2(const G2Xyzz *sums, Windows windows) { return finish(sums, windows); }

G2Jacobian finish_g2(const G2Xyzz &result) { return to_jacobian(result); }

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
