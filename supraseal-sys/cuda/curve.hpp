// Points of y² = x³ + b (b is not used) as (x/zz, y/zzz), "XYZZ": the cheapest
// coordinates for adding an affine point (Sutherland; formulas madd-2008-s,
// add-2008-s, dbl-2008-s-1 and mdbl-2008-s-1 of the Explicit Formulas Database). An
// addition takes 10 multiplications with an affine point, 14 without.
//
// The formulas are complete: they handle infinity, equal and opposite points.
// Affine infinity is (0, 0), which is on neither curve.
#pragma once

#include "field.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

template <class F> CUZK_FN Xyzz<F> infinity() { return Xyzz<F>{}; }

template <class F> CUZK_FN bool is_infinity(const Xyzz<F> &p) { return is_zero(p.zz); }

template <class F> CUZK_FN bool is_infinity(const Affine<F> &p) {
    return is_zero(p.x) && is_zero(p.y);
}

// No point of either curve has y = 0.
template <class F> CUZK_CALL Xyzz<F> dbl(const Xyzz<F> &p) {
    const F u = add(p.y, p.y);
    const F v = sqr(u);
    const F w = mul(u, v);
    const F s = mul(p.x, v);
    const F x2 = sqr(p.x);
    const F m = add(add(x2, x2), x2);
    const F x = sub(sqr(m), add(s, s));
    return {x, mul_sub(m, sub(s, x), w, p.y), mul(v, p.zz), mul(w, p.zzz)};
}

// The values of an addition after its first multiplications: the first point's x
// and y over the common denominator, and the differences from the second point's.
template <class F> struct Difference {
    F x, y, dx, dy;
};

// The sum's x and y, and the factors by which the denominators grow.
template <class F> CUZK_FN Xyzz<F> add_difference(const Difference<F> &d) {
    const F dx2 = sqr(d.dx);
    const F dx3 = mul(d.dx, dx2);
    const F q = mul(d.x, dx2);
    const F x = sub(sub(sqr(d.dy), dx3), add(q, q));
    return {x, mul_sub(d.dy, sub(q, x), d.y, dx3), dx2, dx3};
}

template <class F> CUZK_FN Xyzz<F> add_affine(const Xyzz<F> &p, const Affine<F> &q) {
    if (is_infinity(q)) {
        return p;
    }
    if (is_infinity(p)) {
        return {q.x, q.y, One<F>::value(), One<F>::value()};
    }
    const F dx = sub(mul(q.x, p.zz), p.x);
    const F dy = sub(mul(q.y, p.zzz), p.y);
    if (is_zero(dx)) {
        return is_zero(dy) ? dbl(p) : infinity<F>();
    }
    Xyzz<F> sum = add_difference<F>({p.x, p.y, dx, dy});
    sum.zz = mul(p.zz, sum.zz);
    sum.zzz = mul(p.zzz, sum.zzz);
    return sum;
}

template <class F> CUZK_CALL Xyzz<F> add(const Xyzz<F> &p, const Xyzz<F> &q) {
    if (is_infinity(q)) {
        return p;
    }
    if (is_infinity(p)) {
        return q;
    }
    const F x = mul(p.x, q.zz);
    const F y = mul(p.y, q.zzz);
    const F dx = sub(mul(q.x, p.zz), x);
    const F dy = sub(mul(q.y, p.zzz), y);
    if (is_zero(dx)) {
        return is_zero(dy) ? dbl(p) : infinity<F>();
    }
    Xyzz<F> sum = add_difference<F>({x, y, dx, dy});
    sum.zz = mul(mul(p.zz, q.zz), sum.zz);
    sum.zzz = mul(mul(p.zzz, q.zzz), sum.zzz);
    return sum;
}

// factor·p, by doubling and adding.
template <class F> CUZK_FN Xyzz<F> times(const Xyzz<F> &p, uint32_t factor) {
    Xyzz<F> product = infinity<F>();
    for (uint32_t bit = 32; bit-- > 0;) {
        if (factor >> bit != 0) {
            product = dbl(product);
        }
        if ((factor >> bit & 1) != 0) {
            product = add(product, p);
        }
    }
    return product;
}

// Multiplied through by zz and zzz, so no inversion is needed.
template <class F> CUZK_FN Jacobian<F> to_jacobian(const Xyzz<F> &p) {
    return {mul(p.x, p.zz), mul(p.y, p.zzz), p.zz};
}

// Σ of the points of a block's threads, into the first: the depth is one addition
// for each bit of THREADS.
template <class B, class F> CUZK_BODY void sum_in_block(B &block, Xyzz<F> *points,
                                                        uint32_t threads) {
    for (uint32_t half = threads / 2; half > 0; half /= 2) {
        block.each([&](uint32_t thread) {
            if (thread < half) {
                points[thread] = add(points[thread], points[thread + half]);
            }
        });
    }
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
