// Sums and MSMs in G2.
#include "msm.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

CUZK_INSTANTIATE_SUMS(Fp2)

Error load_g2(Stream stream) { return load_sums<Fp2>(stream); }

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
