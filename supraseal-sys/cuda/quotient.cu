// The quotient polynomial of a satisfied constraint system, by six transforms.
//
// C = A·B row by row, so C is neither needed nor moved. Write A·B = L + x^N·U. On
// the domain (x^N = 1) the products a∘b are the values of L + U. On the coset of
// the root of order 2N (x^N = −1) they are those of L − U. The quotient is U, half
// the difference.
//
// With 3 passes for each transform (2^19 to 2^26) that would be 18 passes, and 3
// between them. Joined, they are 15: a and b each go up on the domain and down on
// the coset in one pass, and the product goes down, is multiplied and goes up in
// one.
#include "load.hpp"
#include "transform.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

struct FillRoots {
    static constexpr uint32_t THREADS = 256;
    using Shared = Nothing;
    Fr *table;
    uint32_t log;
    Fr powers[LOG_DOMAIN_MAX]; // root 2^k of this table

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t j = block.index * THREADS + thread;
            if (j >> log != 0) {
                return;
            }
            Fr product = Modulus<Fr>::one();
            for (uint32_t bit = 0; bit < log; ++bit) {
                if ((j >> bit & 1) != 0) {
                    product = mul(product, powers[bit]);
                }
            }
            table[j] = product;
        });
    }
};

// Bit k of the numbers in this table is bit k + skipped of a root's.
static Error fill_roots(Fr *table, uint32_t log, uint32_t skipped, Stream stream) {
    FillRoots fill{table, log, {}};
    // Root 2^k has order 2^(k + 2).
    Fr power = root_of_unity();
    for (uint32_t k = LOG_DOMAIN_MAX; k-- > 0;) {
        if (k >= skipped) {
            fill.powers[k - skipped] = power;
        }
        power = sqr(power);
    }
    return launch(fill, div_ceil<uint64_t>(uint64_t{1} << log, FillRoots::THREADS), stream);
}

Error make_roots(const Roots &roots, Stream stream) {
    if (roots.log > LOG_DOMAIN_MAX || roots.low_log > roots.log) {
        return INVALID_VALUE;
    }
    const Error error = fill_roots(const_cast<Fr *>(roots.low), roots.low_log, 0, stream);
    if (error != OK || roots.low_log == roots.log) {
        return error;
    }
    return fill_roots(const_cast<Fr *>(roots.high), roots.log - roots.low_log, roots.low_log,
                      stream);
}

// x / 2^power
static Fr halved(Fr x, uint32_t power) {
    const Fr half = half_of_one();
    for (; power > 0; --power) {
        x = mul(x, half);
    }
    return x;
}

// The passes of one quotient.
class Quotient {
public:
    Quotient(const Roots &roots, uint32_t log, Stream stream)
        : roots_(roots), plan_(Plan::of(log)), log_(log), stream_(stream) {}

    Error run(Fr *a, Fr *b, Fr *sum, Form form) {
        // sum = N·(L + U)
        Pass product = pass(plan_.last(), a, sum);
        product.factor = b;
        product.use_factor = Factor::first;
        product.up = true;
        enqueue(product);
        for (uint32_t i = plan_.last(); i-- > 0;) {
            up(i, sum, false);
        }
        to_coset(b, nullptr, sum, form);
        to_coset(a, b, sum, form);
        // a = N^3·(L − U), and h from both
        for (uint32_t i = plan_.last(); i-- > 0;) {
            Pass back = pass(i, a, a);
            back.up = true;
            back.up_coset = true;
            if (i == 0) {
                finish(back, b, sum, form);
            }
            enqueue(back);
        }
        return error_;
    }

private:
    Pass pass(uint32_t part, const Fr *in, Fr *out) const {
        Pass pass{};
        pass.roots = roots_;
        pass.part = plan_.parts[part];
        pass.in = in;
        pass.out = out;
        return pass;
    }

    void enqueue(const Pass &pass) {
        if (error_ == OK) {
            error_ = launch_pass(pass, stream_);
        }
    }

    void up(uint32_t part, Fr *values, bool coset) {
        Pass up = pass(part, values, values);
        up.up = true;
        up.up_coset = coset;
        enqueue(up);
    }

    // From values on the domain to N times those on the coset. With a `factor`:
    // times that, and one pass up again.
    void to_coset(Fr *values, Fr *factor, const Fr *sum, Form form) {
        for (uint32_t i = plan_.last(); i > 0; --i) {
            up(i, values, false);
        }
        for (uint32_t i = 0; i < plan_.count; ++i) {
            Pass down = pass(i, values, values);
            down.up_first = i == 0;
            down.down = true;
            down.down_coset = true;
            if (i == plan_.last() && factor != nullptr) {
                down.factor = factor;
                down.use_factor = Factor::between;
                down.up = true;
                down.up_coset = true;
                if (i == 0) {
                    finish(down, factor, sum, form);
                }
            }
            enqueue(down);
        }
    }

    // h = (L + U)/2 − (L − U)/2, and both scales.
    void finish(Pass &last, Fr *h, const Fr *sum, Form form) const {
        Fr one = Modulus<Fr>::one();
        if (form == Form::canonical) {
            // A product with a factor that is not in Montgomery form is not in it
            // either.
            one = to_canonical(one);
        }
        last.out = h;
        last.finish = sum;
        last.finish_scale = halved(one, log_ + 1);
        last.scale = halved(one, 3 * log_ + 1);
    }

    Roots roots_;
    Plan plan_;
    uint32_t log_;
    Stream stream_;
    Error error_ = OK;
};

Error quotient(const Roots &roots, uint32_t log, Fr *a, Fr *b, Fr *scratch, Form form,
               Stream stream) {
    if (log > roots.log || roots.log > LOG_DOMAIN_MAX) {
        return INVALID_VALUE;
    }
    return Quotient(roots, log, stream).run(a, b, scratch, form);
}

Error transform(const Roots &roots, uint32_t log, Fr *values, bool coset, bool inverse,
                Stream stream) {
    if (log > roots.log || roots.log > LOG_DOMAIN_MAX) {
        return INVALID_VALUE;
    }
    const Plan plan = Plan::of(log);
    Error error = OK;
    for (uint32_t i = 0; i < plan.count && error == OK; ++i) {
        Pass pass{};
        pass.roots = roots;
        pass.part = plan.parts[inverse ? plan.last() - i : i];
        pass.in = values;
        pass.out = values;
        pass.down = !inverse;
        pass.down_coset = coset;
        pass.up = inverse;
        pass.up_coset = coset;
        error = launch_pass(pass, stream);
    }
    return error;
}

Error load_quotient(Stream stream) { return load<FillRoots, Pass>(stream); }

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
