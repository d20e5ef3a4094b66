// Sums and multi-scalar multiplications in G2.
#include "msm.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

CUZK_INSTANTIATE_SUMS(Fp2)

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
