// Points as parameter files have them, converted to the form in which they are
// added.
#include "curve.hpp"
#include "load.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// The flags of a point's first byte: compressed, infinity, and the choice of the
// root y.
constexpr uint8_t COMPRESSED_BIT = 0x80;
constexpr uint8_t INFINITY_BIT = 0x40;
constexpr uint8_t SORT_BIT = 0x20;

// The coefficient b of the curve over each field.
CUZK_BODY Fp four() {
    const Fp two = add(Modulus<Fp>::one(), Modulus<Fp>::one());
    return add(two, two);
}

template <class F> struct Curve;

template <> struct Curve<Fp> {
    static CUZK_BODY Fp b() { return four(); }
};

template <> struct Curve<Fp2> {
    static CUZK_BODY Fp2 b() { return {four(), four()}; }
};

// Reads 48 bytes, the highest first. Returns false if the value is not below the
// modulus.
CUZK_BODY bool decode(const uint8_t *bytes, uint8_t ignored, Fp &value) {
    for (int i = 0; i < 12; ++i) {
        const uint8_t *at = bytes + 44 - 4 * i;
        const uint32_t first = i == 11 ? at[0] & ~uint32_t{ignored} : at[0];
        value.limbs[i] = first << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
    }
    Fp reduced = value;
    const Fp m = Modulus<Fp>::value();
    const bool is_less = PlainChains<12>::subtract(reduced.limbs, m.limbs) != 0;
    value = to_montgomery(value);
    return is_less;
}

CUZK_BODY bool decode(const uint8_t *bytes, uint8_t ignored, Fp2 &value) {
    const bool is_high = decode(bytes, ignored, value.c1);
    return decode(bytes + 48, 0, value.c0) && is_high;
}

template <class F> struct Decode {
    static constexpr uint32_t THREADS = 128;
    using Shared = Nothing;
    const uint8_t *bytes;
    uint32_t n;
    Affine<F> *points;
    uint32_t *bad;

    CUZK_BODY static bool decode_point(const uint8_t *from, Affine<F> &point) {
        const uint8_t flags = from[0];
        const bool is_x = decode(from, COMPRESSED_BIT | INFINITY_BIT | SORT_BIT, point.x);
        const bool is_y = decode(from + sizeof(F), 0, point.y);
        if (!is_x || !is_y || (flags & (COMPRESSED_BIT | SORT_BIT)) != 0) {
            return false;
        }
        if ((flags & INFINITY_BIT) != 0) {
            return is_infinity(point);
        }
        const F cube = mul(sqr(point.x), point.x);
        return is_equal(sqr(point.y), add(cube, Curve<F>::b()));
    }

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t at = block.index * THREADS + thread;
            if (at >= n) {
                return;
            }
            Affine<F> point;
            if (!decode_point(bytes + size_t{at} * sizeof point, point)) {
                atomic_min(bad, at);
            }
            points[at] = point;
        });
    }
};

template <class F>
Error decode(const uint8_t *bytes, uint32_t n, Affine<F> *points, uint32_t *bad, Stream stream) {
    return launch(Decode<F>{bytes, n, points, bad}, div_ceil(n, Decode<F>::THREADS), stream);
}

template Error decode(const uint8_t *, uint32_t, G1Affine *, uint32_t *, Stream);
template Error decode(const uint8_t *, uint32_t, G2Affine *, uint32_t *, Stream);

Error load_decoding(Stream stream) { return load<Decode<Fp>, Decode<Fp2>>(stream); }

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
