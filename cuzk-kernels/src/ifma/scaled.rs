//! Eight points, scaled each by its own scalar, and added to others.
//!
//! A scalar is cut into digits in base |z|, the curve's parameter, of which r has four. In
//! G2 the Frobenius endomorphism multiplies by z; in G1 another one multiplies by −z².
//! Galbraith, Lin and Scott: "Endomorphisms for Faster Elliptic Curve Cryptography on a Large
//! Class of Curves", eprint 2008/194. So the doublings are those of 64 or 128 bits.
//!
//! The invariant: a result is exact, or there is none. Where a lane met an exception of the
//! addition law, the caller computes it in another way.

use std::sync::OnceLock;

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;

use super::Ifma;
use super::field::coordinate::Coordinate as _;
use super::field::fp::Fp;
use super::field::fp2::Fp2;
use super::field::lanes::{LANES, each_lane};
use super::jacobian::{AffineLanes, Jacobian, Loose};
use crate::affine::Coordinates;

/// The curve's parameter but for its sign, which is negative.
const PARAMETER: u64 = 0xd201_0000_0001_0000;
/// Bits of a window.
const WINDOW: u32 = 4;
/// Multiples of a point in its table: the digits are signed.
const ENTRIES: usize = 1 << (WINDOW - 1);

/// The largest digit.
const DIGIT_MAX: i8 = 1 << (WINDOW - 1);

/// A group of which eight points are scaled at a time.
pub(crate) trait Scaled: Coordinates {
    /// Its coordinates in lanes.
    type Lanes: Loose<Base = Self::Base>;
    /// Parts into which a scalar is cut.
    const PARTS: usize;
    /// Windows of a part.
    const WINDOWS: usize = (4 * 64 / Self::PARTS) / WINDOW as usize + 1;

    /// The factors of x and y, after the p-th power, that multiply a point by the base of
    /// the parts.
    fn endomorphism() -> (Self::Base, Self::Base);
}

impl Scaled for G1Affine {
    type Lanes = Fp;
    const PARTS: usize = 2;

    fn endomorphism() -> (Self::Base, Self::Base) {
        static FACTORS: OnceLock<(blstrs::Fp, blstrs::Fp)> = OnceLock::new();
        *FACTORS.get_or_init(|| {
            let z = Scalar::from(PARAMETER);
            factors::<G1Affine>(z * z, |value| value)
        })
    }
}

impl Scaled for G2Affine {
    type Lanes = Fp2;
    const PARTS: usize = 4;

    fn endomorphism() -> (Self::Base, Self::Base) {
        static FACTORS: OnceLock<(blstrs::Fp2, blstrs::Fp2)> = OnceLock::new();
        *FACTORS.get_or_init(|| {
            factors::<G2Affine>(Scalar::from(PARAMETER), |mut value| {
                value.frobenius_map(1);
                value
            })
        })
    }
}

/// The factors follow from one multiple of the generator.
fn factors<A: Scaled>(base: Scalar, frobenius: impl Fn(A::Base) -> A::Base) -> (A::Base, A::Base)
where
    A::Curve: Curve<AffineRepr = A>,
{
    let (point, image) = (A::generator(), (A::generator() * base).to_affine());
    let ratio = |image: A::Base, of: A::Base| {
        let inverse: Option<A::Base> = frobenius(of).invert().into();
        image * inverse.unwrap_or(A::Base::ZERO)
    };
    (ratio(image.x(), point.x()), ratio(image.y(), point.y()))
}

/// Returns `addends[i] + scalars[i] · points[i]`, or none if a lane met an exception. An
/// addend may be at infinity.
pub(crate) fn multiply_add<A: Scaled>(
    token: Ifma,
    addends: &[A; LANES],
    points: &[A; LANES],
    scalars: &[Scalar; LANES],
) -> Option<[A; LANES]> {
    if points.iter().any(|point| point.is_identity().into()) {
        return None;
    }
    super::multiply_add_lanes(token, addends, points, scalars)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn multiply_add_lanes<A: Scaled>(
    token: Ifma,
    addends: &[A; LANES],
    points: &[A; LANES],
    scalars: &[Scalar; LANES],
) -> Option<[A; LANES]> {
    let table = Table::<A>::new(token, &import(token, points))?;
    let digits = scalars.each_ref().map(digits::<A>);
    let mut sum = Jacobian::new(token, &import(token, points));
    let mut started = 0;
    for window in (0..A::WINDOWS).rev() {
        if started != 0 {
            for _ in 0..WINDOW {
                sum = sum.double();
            }
        }
        for part in 0..A::PARTS {
            let digits = each_lane(|lane| digits[lane][part][window]);
            let nonzero = lanes_where(|lane| digits[lane] != 0);
            if nonzero == 0 {
                continue;
            }
            let term = table.term(token, &digits, part);
            let added = sum.add_affine(&term);
            let first = Jacobian::new(token, &term);
            sum = sum.blend(&added, nonzero & started);
            sum = sum.blend(&first, nonzero & !started);
            started |= nonzero;
        }
    }
    if started != u8::MAX {
        return None;
    }
    let finite = lanes_where(|lane| !bool::from(addends[lane].is_identity()));
    if finite != 0 {
        let added = sum.add_affine(&import(token, addends));
        sum = sum.blend(&added, finite);
    }
    let affine = sum.scaled(&inverse(token, &sum.z)?);
    let (x, y) = (affine.x.export_loose(token), affine.y.export_loose(token));
    Some(std::array::from_fn(|lane| A::from_xy(x[lane], y[lane])))
}

/// The lanes of which something is true.
fn lanes_where(is_true: impl Fn(usize) -> bool) -> u8 {
    (0..LANES).fold(0, |mask, lane| mask | u8::from(is_true(lane)) << lane)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
fn import<A: Scaled>(token: Ifma, points: &[A; LANES]) -> AffineLanes<A::Lanes> {
    AffineLanes {
        x: A::Lanes::import_loose(token, points.each_ref().map(A::x)),
        y: A::Lanes::import_loose(token, points.each_ref().map(A::y)),
    }
}

/// The inverses, or none if a lane is zero.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
fn inverse<C: Loose>(token: Ifma, value: &C) -> Option<C> {
    let has_zero = value.export_loose(token).iter().any(Field::is_zero_vartime);
    (!has_zero).then(|| value.invert(token))
}

/// The first multiples of eight points, with z = 1, lane by lane.
struct Table<A: Scaled> {
    entries: [[Entry<A>; LANES]; ENTRIES],
    endomorphism: AffineLanes<A::Lanes>,
}

/// A point of a table.
type Entry<A> = [<<A as Scaled>::Lanes as super::field::coordinate::Coordinate>::Stored; 2];

impl<A: Scaled> Table<A> {
    /// None if a lane met an exception.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
    fn new(token: Ifma, points: &AffineLanes<A::Lanes>) -> Option<Self> {
        let mut multiples = [Jacobian::new(token, points); ENTRIES];
        // Twice the points are no sum of the addition law.
        multiples[1] = multiples[0].double();
        for i in 2..ENTRIES {
            multiples[i] = multiples[i - 1].add_affine(points);
        }
        let inverses = inverses(token, &multiples)?;
        let mut entries = [[bytemuck::Zeroable::zeroed(); LANES]; ENTRIES];
        for i in 0..ENTRIES {
            let affine = multiples[i].scaled(&inverses[i]);
            let (x, y) = (affine.x.rows(token), affine.y.rows(token));
            for (lane, entry) in entries[i].iter_mut().enumerate() {
                let entry: &mut Entry<A> = entry;
                A::Lanes::store(&x, lane, &mut entry[0]);
                A::Lanes::store(&y, lane, &mut entry[1]);
            }
        }
        let (x, y) = A::endomorphism();
        Some(Table {
            entries,
            endomorphism: AffineLanes {
                x: A::Lanes::import_loose(token, [x; LANES]),
                y: A::Lanes::import_loose(token, [y; LANES]),
            },
        })
    }

    /// Signed multiples, times the base of the parts to the power of `part`. A lane whose
    /// digit is zero has any multiple.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
    fn term(&self, token: Ifma, digits: &[i8; LANES], part: usize) -> AffineLanes<A::Lanes> {
        let entry = |lane: usize| {
            let index = usize::from(digits[lane].unsigned_abs()).saturating_sub(1);
            &self.entries[index][lane]
        };
        let mut x = A::Lanes::load(token, each_lane(|lane| &entry(lane)[0]));
        let mut y = A::Lanes::load(token, each_lane(|lane| &entry(lane)[1]));
        for _ in 0..part {
            x = x.frobenius::<3>().mul(&self.endomorphism.x);
            y = y.frobenius::<3>().mul(&self.endomorphism.y);
        }
        let zero = y.minus::<3>(&y);
        let negative = lanes_where(|lane| digits[lane] < 0);
        AffineLanes {
            x,
            y: y.blend(&zero.minus::<3>(&y), negative),
        }
    }
}

/// The inverses of all z, by one inversion; none if one is zero.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
fn inverses<C: Loose>(token: Ifma, points: &[Jacobian<C>; ENTRIES]) -> Option<[C; ENTRIES]> {
    let mut products = points.map(|point| point.z);
    for i in 1..ENTRIES {
        products[i] = products[i - 1].mul(&points[i].z);
    }
    let mut left = inverse(token, &products[ENTRIES - 1])?;
    let mut inverses = products;
    for i in (1..ENTRIES).rev() {
        inverses[i] = left.mul(&products[i - 1]);
        left = left.mul(&points[i].z);
    }
    inverses[0] = left;
    Some(inverses)
}

/// The signed digits of a scalar, by part and window.
fn digits<A: Scaled>(scalar: &Scalar) -> Vec<Vec<i8>> {
    let in_base = in_base_of_parameter(scalar);
    let parts: Vec<u128> = match A::PARTS {
        2 => in_base
            .chunks(2)
            .map(|pair| u128::from(pair[0]) + u128::from(PARAMETER) * u128::from(pair[1]))
            .collect(),
        _ => in_base.map(u128::from).to_vec(),
    };
    parts
        .into_iter()
        .map(|part| signed_windows(part, A::WINDOWS))
        .collect()
}

/// Digits from −8 to 8, lowest first.
fn signed_windows(mut number: u128, windows: usize) -> Vec<i8> {
    let mut carry = 0;
    let window = |_| {
        let digit = i8::try_from(number % (1 << WINDOW)).unwrap_or(0) + carry;
        number >>= WINDOW;
        carry = i8::from(digit > DIGIT_MAX);
        digit - (carry << WINDOW)
    };
    (0..windows).map(window).collect()
}

/// The four digits of a scalar in base |z|, lowest first.
fn in_base_of_parameter(scalar: &Scalar) -> [u64; 4] {
    let bytes = scalar.to_bytes_le();
    let mut words: [u64; 4] = std::array::from_fn(|i| {
        bytes[8 * i..8 * (i + 1)]
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
    });
    std::array::from_fn(|_| {
        let mut remainder = 0;
        for word in words.iter_mut().rev() {
            let dividend = u128::from(remainder) << 64 | u128::from(*word);
            // The remainder is below the divisor, so the quotient is one word.
            *word = u64::try_from(dividend / u128::from(PARAMETER)).unwrap_or(u64::MAX);
            remainder = u64::try_from(dividend % u128::from(PARAMETER)).unwrap_or(0);
        }
        remainder
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_in_the_base_of_the_parameter_make_the_scalar() {
        let base = Scalar::from(PARAMETER);
        for scalar in [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, base, base.square()] {
            let digits = in_base_of_parameter(&scalar);
            let sum = digits
                .iter()
                .rev()
                .fold(Scalar::ZERO, |sum, digit| sum * base + Scalar::from(*digit));
            assert_eq!(sum, scalar);
        }
    }

    #[test]
    fn signed_windows_make_the_number() {
        for number in [0, 1, 8, 9, 15, 16, u128::MAX, u128::from(PARAMETER)] {
            let windows = signed_windows(number, 33);
            assert!(windows.iter().all(|digit| digit.unsigned_abs() <= 8));
            let sum = windows.iter().rev().fold(Scalar::ZERO, |sum, digit| {
                let size = Scalar::from(u64::from(digit.unsigned_abs()));
                let digit = if *digit < 0 { -size } else { size };
                sum * Scalar::from(16) + digit
            });
            let [high, low] = [number >> 64, number & u128::from(u64::MAX)]
                .map(|word| Scalar::from(u64::try_from(word).unwrap()));
            let shift = Scalar::from(1 << 32).square();
            assert_eq!(sum, high * shift + low);
        }
    }
}
