// What the device computes: the whole interface between the host side (memory,
// streams, errors) and the kernels. No CUDA header is needed to include it.
//
// Every function below enqueues its kernels on `stream` and returns at once:
// it allocates nothing and waits for nothing. Pointers are device memory,
// aligned to 256 bytes for scratch and to 16 for the rest, and must live until
// the stream has passed. Scratch is as large as the `..._scratch_bytes` of the
// same arguments says; what is in it before and after does not matter. One
// scratch may serve any number of calls on one stream. The result is a
// `cudaError_t`: 0, cudaErrorInvalidValue (1) for sizes out of range, or what
// the launch returned. Errors inside kernels surface later on the stream.
//
// What is a template here is there for both groups: F is Fp or Fp2.
//
// Compiled with CUZK_EMULATED the same source is plain C++: "device memory" is
// host memory, and every function is finished when it returns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "types.hpp"

struct CUstream_st;

namespace cuzk::device {

inline namespace CUZK_NAMESPACE {

using Error = int; // a cudaError_t

// Where kernels are enqueued. Once the word `stop`, in device memory, is not 0,
// what of them has not begun does nothing, and results are garbage; it stays so
// until they have all passed. Null for kernels that nothing stops.
struct Stream {
    Stream(CUstream_st *stream, const uint32_t *stop_word = nullptr)
        : raw(stream), stop(stop_word) {}

    CUstream_st *raw; // a cudaStream_t
    const uint32_t *stop;
};

// Domains have at most 2^31 points: the coset's generator has order 2^32.
constexpr uint32_t LOG_DOMAIN_MAX = 31;

// ---- roots of unity ------------------------------------------------------

// The twiddles of every domain up to 2^log points: root j is e(frac(j)/2),
// where e(x) = ω^(x·2^32) for blst's 2^32th root ω and frac(j) is j's bits,
// the lowest first, as a binary fraction. Kept whole (low_log = log; 2^log
// elements in `low`, `high` not read), or as two factors (2^low_log elements
// in `low`, 2^(log − low_log) in `high`) at the price of some 9 % more
// multiplications in a transform.
struct Roots {
    const Fr *low;
    const Fr *high;
    uint32_t low_log;
    uint32_t log;
};

// Fills both tables that `roots` names.
Error make_roots(const Roots &roots, Stream stream);

// ---- evaluation ----------------------------------------------------------

constexpr uint32_t EVALUATE_BLOCK_ROWS = 256;

// A compiled circuit, flat (`cuzk_pce::Flat`, which names its arrays the same
// and says what is in them). The host has checked it: kernels do not.
struct Program {
    const Fr *coefficients;     // Montgomery form
    const int32_t *integers;    // by coefficient: its value if that is small, else 0
    const Fr *halves;           // 2^−k for k < 256
    const uint32_t *part_ends;  // by part: the end of its items
    const uint32_t *items;      // two words an item
    const uint32_t *shapes;     // two words a shape: its parts in A and in B
    const uint32_t *unit_rows;  // two words a row: shape, cursor since its reference's
    const uint32_t *references; // three words: first row, cursor before it, first unit row
    const uint32_t *block_references; // by EVALUATE_BLOCK_ROWS rows, and one more:
                                      // the reference that its first row is in
    uint32_t rows;
    uint32_t num_inputs;
};

// A packed witness (`cuzk_pce::PackedWitness`, uploaded as it is). `bits` and
// `wide` have a word more than num_aux bits need.
struct Witness {
    const Fr *inputs;
    const uint64_t *bits;
    const uint64_t *wide;
    const uint32_t *ranks;
    const Fr *wide_values;
};

// Where the value of row i goes: to place i, or to place rev(i), the order that
// `quotient` takes.
enum class Order : uint32_t { natural, bit_reversed };

// a = A·w and b = B·w over the 2^log places of the domain: the rows, then the
// num_inputs rows `input · 0 = 0` that Groth16 appends, then zeros.
Error evaluate(const Program &program, const Witness &witness, uint32_t log, Order order, Fr *a,
               Fr *b, Stream stream);

// ---- quotient ------------------------------------------------------------

enum class Form : uint32_t { montgomery, canonical };

// h = (a·b − c) / (x^N − 1) with c = a∘b, in coefficients, N = 2^log. Takes a
// and b in bit-reversed order. h comes into `b` in natural order, its last
// coefficient zero; `a` and `scratch` (N elements) come back as garbage.
// roots.log ≥ log.
Error quotient(const Roots &roots, uint32_t log, Fr *a, Fr *b, Fr *scratch, Form form,
               Stream stream);

// A whole transform in place, for tests and measurements: coefficients in
// natural order to values in bit-reversed order, on the domain or on the coset
// of the root of order 2N; or back, times N.
Error transform(const Roots &roots, uint32_t log, Fr *values, bool coset, bool inverse,
                Stream stream);

// ---- which bases a witness selects ---------------------------------------

// The bases of a query over some of the aux variables, a range of which is in
// memory. Base k of the query is its k-th variable, inputs before aux. A query
// can be taken in pieces, by words of the witness: with the pointers moved on.
struct Query {
    const uint64_t *mask;  // bit i: aux i is in the query; null if all are
    const uint32_t *ranks; // by word of `mask`: bits before it; null with it
    uint32_t before;       // bases before those of aux: the query's inputs. (Of a
                           // piece of a query without a mask: before the piece's.)
    uint32_t first_base;   // the first that is in memory
    uint32_t num_bases;    // how many are
};

// No base: the scalar counts for nothing.
constexpr uint32_t NO_BASE = UINT32_MAX;

// For each of the `num_wide` bits set in `wide` (`words` of them, with `ranks`
// as in Witness), in order, the place in memory of its base, or NO_BASE.
Error wide_bases(const Query &query, const uint64_t *wide, const uint32_t *ranks, uint32_t words,
                 uint32_t *places, Stream stream);

// ---- sums of points ------------------------------------------------------

// Σ of the bases of `query` whose aux variable has a bit in `bits` (`words` of
// them, at most SUM_WORDS_MAX, none set past num_aux). One point. Scratch is
// 256 bytes a word and a little.
constexpr uint32_t SUM_WORDS_MAX = 1 << 25;
template <class F> size_t sum_scratch_bytes(uint32_t words);
template <class F>
Error sum(const Affine<F> *bases, const Query &query, const uint64_t *bits, uint32_t words,
          void *scratch, Xyzz<F> *sum, Stream stream);

// ---- multi-scalar multiplication -----------------------------------------

// How a multiplication is cut: `windows` signed digits of `bits` bits.
struct Windows {
    uint32_t bits;
    uint32_t windows; // = ceil(255 / bits)
};

constexpr uint32_t WINDOWS_MAX = 64;
constexpr uint32_t WINDOW_BITS_MIN = 4;
constexpr uint32_t WINDOW_BITS_MAX = 18;

// The best cut for n scalars, or that of `bits` bits.
Windows choose_windows(size_t n);
Windows windows_of(uint32_t bits);

// Scalar i goes with bases[places[i]], or with bases[i] if `places` is null.
struct Scalars {
    const Fr *values;
    const uint32_t *places;
    uint32_t n; // n · windows < 2^32, and places below 2^31
    Form form;
};

// `sums` has room for WINDOWS_MAX points: Σ scalars[i]·bases[i] is
// Σ sums[k]·2^(k·bits) over the `windows` of them, which `finish` adds up. Fewer
// scalars with the same windows never need more scratch.
template <class F> size_t msm_scratch_bytes(uint32_t n, Windows windows);
template <class F>
Error msm(const Affine<F> *bases, const Scalars &scalars, Windows windows, void *scratch,
          Xyzz<F> *sums, Stream stream);

// What a sum's one point is, as sums of windows.
constexpr Windows ONE_SUM{0, 1};

// On the host, from sums that were copied down: Σ sums[k]·2^(k·bits). Some 255
// doublings: 0.1 ms on a CPU, where one thread of a device takes twenty times
// as long.
template <class F> Jacobian<F> finish(const Xyzz<F> *sums, Windows windows);

// ---- parameters ----------------------------------------------------------

// Decodes n uncompressed points as parameter files have them (big-endian
// canonical coordinates, c1 before c0, three flag bits), 96 or 192 bytes each,
// and checks that they are on the curve. `bad`, a word that the host has set to
// UINT32_MAX, becomes the least index of a point that is not.
template <class F>
Error decode(const uint8_t *bytes, uint32_t n, Affine<F> *points, uint32_t *bad, Stream stream);

// ---- start -----------------------------------------------------------------

// Launches every kernel once, on a stream whose word `stop` is not 0: none of them does
// anything, and what a driver does at a kernel's first launch it has done then.
Error load_kernels(Stream stream);

// ---- self-test -----------------------------------------------------------

// Compares the device's field arithmetic with the plain one, on the device, on
// `rounds` · 2^16 pseudorandom and edge values. `failures`, a word that the
// host has set to 0, becomes the number of differences.
Error self_test(uint32_t rounds, uint32_t *failures, Stream stream);

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
