// a = A·w and b = B·w of a compiled circuit and a packed witness.
//
// Each thread takes one row. The rows that repeat are looked up, and only the two
// values of a row are ever written. A row of 2.7 M is some ten
// dependent reads of a few megabytes (in L2) and at most a few multiplications. In
// all 172 MB are written, which takes an H100 52 µs at its 3.3 TB/s. That is computed,
// not measured. So the writes should decide the time: rows are read
// where they are compact, and values are written once, to the place where the
// transforms need them.
//
// Terms that make an integer are summed as one: bits with small coefficients, and
// runs over bits whose coefficients double or halve, which are the number that the
// bits form.
#include "field.hpp"
#include "load.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// The parts of an item's words (`cuzk_pce`, program/rows.rs).
constexpr uint32_t INPUT_BIT = 1U << 31;
constexpr uint32_t RUN_BIT = 1U << 31;
constexpr uint32_t WIDE_GAP_BIT = 1U << 30;
constexpr uint32_t STEP_SHIFT = 28;
constexpr uint32_t LENGTH_SHIFT = 20;

enum class Step : uint32_t { stay, twice, half };

// A run over at most so many bits adds an integer below 2^61.
constexpr uint32_t INTEGER_LENGTH_MAX = 30;
constexpr int64_t INTEGER_MAX = int64_t{1} << 61;

struct Run {
    uint32_t start; // the first of its aux variables
    uint32_t length;
    uint32_t gap;
    uint32_t coefficient;
    Step step;
};

CUZK_BODY Fr from_unsigned(const uint64_t *words, uint32_t count) {
    Fr value{};
    for (uint32_t i = 0; i < count; ++i) {
        value.limbs[2 * i] = static_cast<uint32_t>(words[i]);
        value.limbs[2 * i + 1] = static_cast<uint32_t>(words[i] >> 32);
    }
    return to_montgomery(value);
}

CUZK_BODY Fr from_signed(int64_t integer) {
    const bool is_negative = integer < 0;
    const uint64_t magnitude =
        is_negative ? 0 - static_cast<uint64_t>(integer) : static_cast<uint64_t>(integer);
    const Fr value = from_unsigned(&magnitude, 1);
    return is_negative ? sub(Fr{}, value) : value;
}

// The 64 bits from `start` on.
CUZK_BODY uint64_t window(const uint64_t *words, uint32_t start) {
    const uint64_t *at = words + start / 64;
    const uint32_t shift = start % 64;
    // A shift by 64 is undefined, so it is made in two steps.
    return at[0] >> shift | at[1] << 1 << (63 - shift);
}

// Bits 0, 2, 4 and so on, next to each other.
CUZK_BODY uint64_t every_second(uint64_t bits) {
    bits &= 0x5555555555555555;
    bits = (bits | bits >> 1) & 0x3333333333333333;
    bits = (bits | bits >> 2) & 0x0f0f0f0f0f0f0f0f;
    bits = (bits | bits >> 4) & 0x00ff00ff00ff00ff;
    bits = (bits | bits >> 8) & 0x0000ffff0000ffff;
    return (bits | bits >> 16) & 0x00000000ffffffff;
}

// `count` bits, at most 64, from `start` on, with a distance of `gap` between
// neighbours.
CUZK_BODY uint64_t strided(const uint64_t *words, uint32_t start, uint32_t count, uint32_t gap) {
    uint64_t bits;
    if (gap == 1) {
        bits = window(words, start);
    } else {
        bits = every_second(window(words, start));
        if (count > 32) {
            bits |= every_second(window(words, start + 64)) << 32;
        }
    }
    return bits & UINT64_MAX >> (64 - count);
}

// A sum of terms, part of which is still an integer.
struct RowSum {
    const Program &program;
    const Witness &witness;
    Fr field{};
    int64_t integer = 0;

    CUZK_BODY RowSum(const Program &of, const Witness &over) : program(of), witness(over) {}

    CUZK_BODY void add_integer(int64_t value) {
        integer += value;
        if (integer >= INTEGER_MAX || integer <= -INTEGER_MAX) {
            field = add(field, from_signed(integer));
            integer = 0;
        }
    }

    CUZK_BODY void add_coefficient(uint32_t coefficient) {
        const int32_t small = program.integers[coefficient];
        if (small != 0) {
            add_integer(small);
        } else {
            field = add(field, program.coefficients[coefficient]);
        }
    }

    CUZK_BODY void add_product(const Fr &value, uint32_t coefficient) {
        const int32_t small = program.integers[coefficient];
        if (small == 1) {
            field = add(field, value);
        } else if (small == -1) {
            field = sub(field, value);
        } else {
            field = add(field, mul(value, program.coefficients[coefficient]));
        }
    }

    CUZK_BODY bool is_wide(uint32_t aux) const {
        return (witness.wide[aux / 64] >> aux % 64 & 1) != 0;
    }

    CUZK_BODY Fr wide_value(uint32_t aux) const {
        const uint64_t below = witness.wide[aux / 64] & ((uint64_t{1} << aux % 64) - 1);
        return witness.wide_values[witness.ranks[aux / 64] + popcount(below)];
    }

    CUZK_BODY bool is_one(uint32_t aux) const {
        return (witness.bits[aux / 64] >> aux % 64 & 1) != 0;
    }

    CUZK_BODY void add_term(uint32_t col, uint32_t coefficient, uint32_t cursor) {
        if (col == INPUT_BIT) {
            add_coefficient(coefficient); // ONE
        } else if ((col & INPUT_BIT) != 0) {
            add_product(witness.inputs[col & ~INPUT_BIT], coefficient);
        } else if (is_wide(cursor - col)) {
            add_product(wide_value(cursor - col), coefficient);
        } else if (is_one(cursor - col)) {
            add_coefficient(coefficient);
        }
    }

    // The bits of a run, the first one lowest; false if a variable is not a bit.
    CUZK_BODY bool run_bits(const Run &run, uint64_t *bits) const {
        uint64_t wide = 0;
        CUZK_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
            bits[i] = 0;
            if (run.length > 64 * i) {
                const uint32_t count = min_of(run.length - 64 * i, 64U);
                const uint32_t start = run.start + 64 * i * run.gap;
                wide |= strided(witness.wide, start, count, run.gap);
                bits[i] = strided(witness.bits, start, count, run.gap);
            }
        }
        return wide == 0;
    }

    CUZK_BODY void add_run_by_term(const Run &run) {
        Fr coefficient = program.coefficients[run.coefficient];
        for (uint32_t k = 0; k < run.length; ++k) {
            const uint32_t aux = run.start + k * run.gap;
            if (is_wide(aux)) {
                field = add(field, mul(wide_value(aux), coefficient));
            } else if (is_one(aux)) {
                field = add(field, coefficient);
            }
            if (run.step == Step::twice) {
                coefficient = add(coefficient, coefficient);
            } else if (run.step == Step::half) {
                coefficient = mul(coefficient, program.halves[1]);
            }
        }
    }

    CUZK_BODY void add_run(const Run &run) {
        uint64_t bits[4];
        if (!run_bits(run, bits)) {
            add_run_by_term(run);
            return;
        }
        const int32_t small = program.integers[run.coefficient];
        if (run.step == Step::stay) {
            const uint64_t ones =
                popcount(bits[0]) + popcount(bits[1]) + popcount(bits[2]) + popcount(bits[3]);
            if (small != 0) {
                add_integer(small * static_cast<int64_t>(ones));
            } else {
                add_product(from_unsigned(&ones, 1), run.coefficient);
            }
        } else if (run.step == Step::twice) {
            if (small != 0 && run.length <= INTEGER_LENGTH_MAX) {
                add_integer(small * static_cast<int64_t>(bits[0]));
            } else {
                add_product(from_unsigned(bits, 4), run.coefficient);
            }
        } else {
            // As a number whose lowest bit is the last, times 2^−(length − 1).
            reverse(bits, run.length);
            const Fr value = from_unsigned(bits, 4);
            add_product(mul(value, program.halves[run.length - 1]), run.coefficient);
        }
    }

    // The lowest `length` bits in the opposite order.
    static CUZK_BODY void reverse(uint64_t *bits, uint32_t length) {
        // All 256 bits are reversed: the wanted ones are the highest.
        const uint32_t shift = 256 - length;
        uint64_t reversed[5];
        CUZK_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
            reversed[i] = reverse_bits(bits[3 - i]);
        }
        reversed[4] = 0;
        for (uint32_t words = shift / 64; words > 0; --words) {
            CUZK_UNROLL
            for (uint32_t i = 0; i < 4; ++i) {
                reversed[i] = reversed[i + 1];
            }
        }
        CUZK_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
            bits[i] = reversed[i] >> shift % 64 | reversed[i + 1] << 1 << (63 - shift % 64);
        }
    }

    CUZK_BODY void add_part(uint32_t part, uint32_t cursor) {
        const uint32_t end = program.part_ends[part];
        for (uint32_t i = part == 0 ? 0 : program.part_ends[part - 1]; i < end; ++i) {
            const uint32_t col = program.items[2 * size_t{i}];
            const uint32_t word = program.items[2 * size_t{i} + 1];
            if ((word & RUN_BIT) == 0) {
                add_term(col, word, cursor);
            } else {
                add_run({cursor - col, word >> LENGTH_SHIFT & 0xff,
                         (word & WIDE_GAP_BIT) != 0 ? 2U : 1U, word & ((1U << LENGTH_SHIFT) - 1),
                         static_cast<Step>(word >> STEP_SHIFT & 3)});
            }
        }
    }

    CUZK_BODY Fr total() const {
        return integer == 0 ? field : add(field, from_signed(integer));
    }
};

struct Evaluate {
    static constexpr uint32_t THREADS = EVALUATE_BLOCK_ROWS;
    using Shared = Nothing;
    Program program;
    Witness witness;
    uint32_t log;
    Order order;
    Fr *a;
    Fr *b;

    CUZK_BODY uint32_t place(uint32_t row) const {
        if (order == Order::natural || log == 0) {
            return row;
        }
        return static_cast<uint32_t>(reverse_bits(row) >> (64 - log));
    }

    // The last reference that begins at `row` or before. `block` is the row's
    // block.
    CUZK_BODY uint32_t reference(uint32_t row, uint32_t block) const {
        uint32_t low = program.block_references[block];
        uint32_t high = program.block_references[block + 1];
        while (low < high) {
            const uint32_t middle = low + (high - low + 1) / 2;
            if (program.references[3 * size_t{middle}] <= row) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        return low;
    }

    CUZK_BODY Fr part(uint32_t part, uint32_t cursor) const {
        RowSum sum(program, witness);
        sum.add_part(part, cursor);
        return sum.total();
    }

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t row = block.index * THREADS + thread;
            if (row >> log != 0) {
                return;
            }
            const uint32_t to = place(row);
            if (row >= program.rows) {
                const uint32_t input = row - program.rows;
                a[to] = input < program.num_inputs ? witness.inputs[input] : Fr{};
                b[to] = Fr{};
                return;
            }
            const uint32_t *from = program.references + 3 * size_t{reference(row, block.index)};
            const uint32_t *unit = program.unit_rows + 2 * (size_t{from[2]} + (row - from[0]));
            const uint32_t *shape = program.shapes + 2 * size_t{unit[0]};
            const uint32_t cursor = from[1] + unit[1];
            a[to] = part(shape[0], cursor);
            b[to] = part(shape[1], cursor);
        });
    }
};

Error evaluate(const Program &program, const Witness &witness, uint32_t log, Order order, Fr *a,
               Fr *b, Stream stream) {
    if (log > LOG_DOMAIN_MAX ||
        uint64_t{program.rows} + program.num_inputs > uint64_t{1} << log) {
        return INVALID_VALUE;
    }
    return launch(Evaluate{program, witness, log, order, a, b},
                  div_ceil<uint64_t>(uint64_t{1} << log, Evaluate::THREADS), stream);
}

Error load_evaluation(Stream stream) { return load<Evaluate>(stream); }

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
