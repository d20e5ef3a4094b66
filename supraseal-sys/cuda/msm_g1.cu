// Sums and MSMs in G1, and the parts that both groups share.
#include "msm.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

Windows windows_of(uint32_t bits) { return {bits, div_ceil(255U, bits)}; }

// The fewest multiplications: 10 for each digit, and two additions of 14 for each
// bucket.
Windows choose_windows(size_t n) {
    Windows best = windows_of(WINDOW_BITS_MIN);
    double least = 0;
    for (uint32_t bits = WINDOW_BITS_MIN; bits <= WINDOW_BITS_MAX; ++bits) {
        const Windows windows = windows_of(bits);
        const double work = static_cast<double>(windows.windows) *
                            (10.0 * static_cast<double>(n) + 28.0 * (1U << (bits - 1)));
        if (bits == WINDOW_BITS_MIN || work < least) {
            least = work;
            best = windows;
        }
    }
    return best;
}

CUZK_INSTANTIATE_SUMS(Fp)

// The places of the bases of wide values, in order.
struct PlaceWide {
    static constexpr uint32_t THREADS = 256;
    using Shared = Nothing;
    Query query;
    const uint64_t *wide;
    const uint32_t *ranks;
    uint32_t words;
    uint32_t *places;

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t word = block.index * THREADS + thread;
            if (word >= words) {
                return;
            }
            const QueryWord bases = QueryWord::of(query, word);
            uint32_t at = ranks[word];
            for (uint64_t left = wide[word]; left != 0; left &= left - 1) {
                places[at++] = bases.place(lowest_bit(left));
            }
        });
    }
};

Error wide_bases(const Query &query, const uint64_t *wide, const uint32_t *ranks, uint32_t words,
                 uint32_t *places, Stream stream) {
    return launch(PlaceWide{query, wide, ranks, words, places},
                  div_ceil(words, PlaceWide::THREADS), stream);
}

Error load_g1(Stream stream) {
    const Error error = load<PlaceWide>(stream);
    return error == OK ? load_sums<Fp>(stream) : error;
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
