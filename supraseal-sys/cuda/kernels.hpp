// The whole interface between the host side (memory, streams, errors) and the
// kernels. No CUDA header is needed to include it.
//
// Each function below enqueues its kernels on `stream` and returns at once: it
// allocates nothing and waits for nothing. Pointers are device memory, aligned to
// 256 bytes for scratch and to 16 for the rest, and must live until the stream has
// passed.
//
// Scratch has the size that `..._scratch_bytes` returns for the same arguments. Its
// contents before and after do not matter. One scratch may serve any number of
// calls on one stream.
//
// The result is a `cudaError_t`: 0, cudaErrorInvalidValue (1) for sizes out of
// range, or the result of the launch. Errors inside kernels surface later on the
// stream.
//
// Templates here serve both groups: F is Fp or Fp2.
//
// Compiled with CUZK_EMULATED, the same source is plain C++: "device memory" is
// host memory, and each function is finished when it returns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "types.hpp"

struct CUstream_st;

namespace cuzk::device {

inline namespace CUZK_NAMESPACE {

using Error = int; // a cudaError_t

// The stream on which kernels are enqueued. Once the word `stop`, in device memory,
// is not 0, kernels that have not begun do nothing, and results are garbage. It
// stays so until all of them have passed. Null for kernels that nothing stops.
struct Stream {
    Stream(CUstream_st *stream, const uint32_t *stop_word = nullptr)
        : raw(stream), stop(stop_word) {}

    CUstream_st *raw; // a cudaStream_t
    const uint32_t *stop;
};

// Domains have at most 2^31 points: the coset's generator has order 2^32.
constexpr uint32_t LOG_DOMAIN_MAX = 31;

// ---- roots of unity ------------------------------------------------------

// The twiddles of all domains up to 2^log points. Root j is e(frac(j)/2). Here e(x)
// = ω^(x·2^32) for blst's 2^32th root ω, and frac(j) is the bits of j, the lowest
// first, as a binary fraction.
//
// They are kept whole (low_log = log; 2^log elements in `low`, `high` is not read),
// or as two factors (2^low_log elements in `low`, 2^(log − low_log) in `high`). Two
// factors cost some 9 % more multiplications in a transform.
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

// A flat compiled circuit (`cuzk_pce::Flat` has arrays of the same names, and
// documents them). The host has checked it: kernels do not.
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
// `wide` have one word more than num_aux bits need.
struct Witness {
    const Fr *inputs;
    const uint64_t *bits;
    const uint64_t *wide;
    const uint32_t *ranks;
    const Fr *wide_values;
};

// The place of the value of row i: place i, or place rev(i), which is the order
// that `quotient` takes.
enum class Order : uint32_t { natural, bit_reversed };

// a = A·w and b = B·w over the 2^log places of the domain: the rows, then the
// num_inputs rows `input · 0 = 0` that Groth16 appends, then zeros.
Error evaluate(const Program &program, const Witness &witness, uint32_t log, Order order, Fr *a,
               Fr *b, Stream stream);

// ---- quotient ------------------------------------------------------------

enum class Form : uint32_t { montgomery, canonical };

// h = (a·b − c) / (x^N − 1) with c = a∘b, in coefficients, N = 2^log. Takes a and b
// in bit-reversed order. Writes h to `b` in natural order; its last coefficient is
// zero. `a` and `scratch` (N elements) contain garbage afterwards. roots.log ≥ log.
Error quotient(const Roots &roots, uint32_t log, Fr *a, Fr *b, Fr *scratch, Form form,
               Stream stream);

// A whole transform in place, for tests and measurements. It goes from coefficients
// in natural order to values in bit-reversed order, on the domain or on the coset
// of the root of order 2N. Or it goes back, times N.
Error transform(const Roots &roots, uint32_t log, Fr *values, bool coset, bool inverse,
                Stream stream);

// ---- which bases a witness selects ---------------------------------------

// The bases of a query over some of the aux variables, of which a range is in
// memory. Base k of the query belongs to its k-th variable, inputs before aux. A
// query can be taken in pieces, by words of the witness, with the pointers moved
// on.
struct Query {
    const uint64_t *mask;  // bit i: aux i is in the query; null if all are
    const uint32_t *ranks; // by word of `mask`: bits before it; null with it
    uint32_t before;       // bases before those of aux: the query's inputs. (Of a
                           // piece of a query without a mask: before the piece's.)
    uint32_t first_base;   // the first that is in memory
    uint32_t num_bases;    // how many are
};

// No base: the scalar does not count.
constexpr uint32_t NO_BASE = UINT32_MAX;

// For each of the `num_wide` bits set in `wide` (`words` words, with `ranks` as in
// Witness), in order: the place in memory of its base, or NO_BASE.
Error wide_bases(const Query &query, const uint64_t *wide, const uint32_t *ranks, uint32_t words,
                 uint32_t *places, Stream stream);

// ---- sums of points ------------------------------------------------------

// Σ of the bases of `query` whose aux variable has a bit in `bits` (`words` words,
// at most SUM_WORDS_MAX, no bit set past num_aux). The result is one point. Scratch
// is 256 bytes for each word, and a little more.
constexpr uint32_t SUM_WORDS_MAX = 1 << 25;
template <class F> size_t sum_scratch_bytes(uint32_t words);
template <class F>
Error sum(const Affine<F> *bases, const Query &query, const uint64_t *bits, uint32_t words,
          void *scratch, Xyzz<F> *sum, Stream stream);

// ---- multi-scalar multiplication -----------------------------------------

// The way in which a multiplication is cut: `windows` signed digits of `bits` bits.
struct Windows {
    uint32_t bits;
    uint32_t windows; // = ceil(255 / bits)
};

constexpr uint32_t WINDOWS_MAX = 64;
constexpr uint32_t WINDOW_BITS_MIN = 4;
constexpr uint32_t WINDOW_BITS_MAX = 18;

// The best cut for n scalars, or the cut of `bits` bits.
Windows choose_windows(size_t n);
Windows windows_of(uint32_t bits);

// Scalar i belongs to bases[places[i]], or to bases[i] if `places` is null.
struct Scalars {
    const Fr *values;
    const uint32_t *places;
    uint32_t n; // n · windows < 2^32, and places below 2^31
    Form form;
};

// `sums` has room for WINDOWS_MAX points. Σ scalars[i]·bases[i] is Σ
// sums[k]·2^(k·bits) over the `windows` of them, which `finish` adds up. Fewer
// scalars with the same windows never need more scratch.
template <class F> size_t msm_scratch_bytes(uint32_t n, Windows windows);
template <class F>
Error msm(const Affine<F> *bases, const Scalars &scalars, Windows windows, void *scratch,
          Xyzz<F> *sums, Stream stream);

// The one point of a sum, as sums of windows.
constexpr Windows ONE_SUM{0, 1};

// On the host, from sums that were copied down: Σ sums[k]·2^(k·bits). Some 255
// doublings: 0.1 ms on a CPU. One thread of a device takes twenty times as long.
template <class F> Jacobian<F> finish(const Xyzz<F> *sums, Windows windows);

// ---- parameters ----------------------------------------------------------

// Decodes n uncompressed points as parameter files have them (big-endian canonical
// coordinates, c1 before c0, three flag bits), 96 or 192 bytes each. Checks that
// they are on the curve. `bad`, a word that the host has set to UINT32_MAX, becomes
// the least index of a bad point.
template <class F>
Error decode(const uint8_t *bytes, uint32_t n, Affine<F> *points, uint32_t *bad, Stream stream);

// ---- start -----------------------------------------------------------------

// Launches each kernel once, on a stream whose word `stop` is not 0. None of them
// does anything, but the driver has done its work of a first launch then.
Error load_kernels(Stream stream);

// ---- self-test -----------------------------------------------------------

// Compares the device's field arithmetic with the plain one, on the device, on
// `rounds` · 2^16 pseudorandom and edge values. `failures`, a word that the host
// has set to 0, becomes the number of differences.
Error self_test(uint32_t rounds, uint32_t *failures, Stream stream);

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
