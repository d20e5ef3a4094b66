//! Random values of a circuit's variables, and what their products need.
//!
//! A random witness w satisfies no row: its products a∘b, for a = A·w and b = B·w, are not
//! C·w. So three more vectors are drawn such that A·x + B·y + C·z = a∘b in every row. They
//! take the place that w has in the proof of a satisfied circuit, where x = y = 0 and z = w.
//!
//! All values are random but one a row: the unknown that gets the value which makes the row
//! hold. A row needs an unknown that no row before it has. Most rows bring a new variable
//! into C, or one into A or B. A row that brings none is moved before all others, and the
//! values are drawn again.
//!
//! Not a check: that is [`relation`](super::relation). The invariant: every equation of a
//! row holds.

use std::collections::HashSet;

use blstrs::Scalar;
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::quotient::quotient_with;
use cuzk_kernels::{Isa, KernelError};
use cuzk_pce::Program;
use cuzk_pce::program::RowTerm;
use ff::Field;
use rand_chacha::ChaCha8Rng;

/// Passes over the rows after which a circuit counts as one without a solution. Each pass
/// takes as long as unfolding the circuit.
const PASSES_MAX: usize = 16;

/// Rows that can be kept to be solved first. Rows without a new variable are about as many
/// as public inputs.
const FIRST_MAX: usize = 1 << 20;

/// Values of all variables, `[inputs | aux]`: five vectors of scalars.
pub(super) struct Assignment {
    /// w
    pub(super) witness: Vec<Scalar>,
    /// x, y and z: the multipliers of A, B and C.
    pub(super) multipliers: [Vec<Scalar>; 3],
    /// The coefficients of the quotient of A·B less the combination of A, B and C.
    pub(super) quotient: Vec<Scalar>,
}

/// The reason why there is no assignment.
#[derive(Debug)]
pub(super) enum NoAssignment {
    /// So many rows have no unknown of their own.
    Unsolved { rows: usize },
    /// The quotient could not be computed.
    Kernel(KernelError),
}

/// Bytes for each variable: four scalars, and whether a row has used three of them.
const VARIABLE_BYTES: usize = 4 * size_of::<Scalar>() + 3;

/// Bytes for each place of the domain: two products, the quotient's scratch, and half a
/// scalar of the domain's table.
const PLACE_BYTES: usize = 3 * size_of::<Scalar>() + size_of::<Scalar>() / 2;

impl Assignment {
    /// Returns the bytes that [`draw`](Self::draw) has at its peak, for this many variables
    /// and places of the domain.
    pub(super) fn bytes(num_variables: usize, domain_len: usize) -> u64 {
        (num_variables * VARIABLE_BYTES + domain_len * PLACE_BYTES) as u64
    }

    /// Draws values for `program`. It has [`bytes`](Self::bytes) while it works. The rows are
    /// solved on this thread, and the quotient on rayon's current pool. `progress` is told
    /// the number of each pass.
    pub(super) fn draw(
        program: &Program<Scalar>,
        isa: Isa,
        rng: &mut ChaCha8Rng,
        mut progress: impl FnMut(usize),
    ) -> Result<Self, NoAssignment> {
        let witness = random(program.num_variables(), rng);
        let mut products = Products::new(program, &witness);
        let mut first: Vec<Row> = Vec::new();
        for pass in 0..PASSES_MAX {
            progress(pass);
            // Each pass draws values that no other pass has computed.
            let mut unknowns = Unknowns::draw(program, rng);
            let tied = solve(program, &witness, &mut products, &mut unknowns, &mut first);
            if tied.is_empty() {
                let quotient = products.quotient(isa).map_err(NoAssignment::Kernel)?;
                return Ok(Self {
                    witness,
                    multipliers: unknowns.values,
                    quotient,
                });
            }
            first.splice(0..0, tied);
            if first.len() > FIRST_MAX {
                break;
            }
        }
        Err(NoAssignment::Unsolved { rows: first.len() })
    }
}

/// Returns the places of a circuit's domain.
pub(super) fn domain_len(program: &Program<Scalar>) -> usize {
    (program.rows() + program.num_inputs()).next_power_of_two()
}

fn random(len: usize, rng: &mut ChaCha8Rng) -> Vec<Scalar> {
    (0..len).map(|_| Scalar::random(&mut *rng)).collect()
}

/// A row that is solved before the others.
struct Row {
    index: usize,
    terms: [Vec<RowTerm<Scalar>>; 3],
}

/// Solves the rows of `first` in their order, then the circuit's others. Returns the rows
/// that do not hold, and takes them out of `first`.
fn solve(
    program: &Program<Scalar>,
    witness: &[Scalar],
    products: &mut Products,
    unknowns: &mut Unknowns,
    first: &mut Vec<Row>,
) -> Vec<Row> {
    let done: HashSet<usize> = first.iter().map(|row| row.index).collect();
    let mut tied = Vec::new();
    let (holding, others) = std::mem::take(first)
        .into_iter()
        .partition(|row| unknowns.solve(&row.terms, products.of(row.index)));
    *first = holding;
    tied.extend::<Vec<Row>>(others);
    for (index, terms) in program.unfold().enumerate() {
        products.evaluate(index, &terms, witness);
        if done.contains(&index) || unknowns.solve(&terms, products.of(index)) {
            continue;
        }
        tied.push(Row { index, terms });
        if tied.len() > FIRST_MAX {
            break;
        }
    }
    tied
}

/// The values of A·w and B·w over the domain.
struct Products {
    a: Vec<Scalar>,
    b: Vec<Scalar>,
}

impl Products {
    /// The rows that Groth16 appends are here: `inputᵢ · 0 = 0`.
    fn new(program: &Program<Scalar>, witness: &[Scalar]) -> Self {
        let (rows, inputs) = (program.rows(), program.num_inputs());
        let domain_len = domain_len(program);
        let [mut a, b] = [(); 2].map(|()| vec![Scalar::ZERO; domain_len]);
        a[rows..rows + inputs].copy_from_slice(&witness[..inputs]);
        Self { a, b }
    }

    fn evaluate(&mut self, row: usize, terms: &[Vec<RowTerm<Scalar>>; 3], witness: &[Scalar]) {
        let value = |terms: &[RowTerm<Scalar>]| {
            let terms = terms.iter();
            terms.fold(Scalar::ZERO, |sum, &(column, coefficient)| {
                sum + coefficient * witness[column as usize]
            })
        };
        self.a[row] = value(&terms[0]);
        self.b[row] = value(&terms[1]);
    }

    fn of(&self, row: usize) -> Scalar {
        self.a[row] * self.b[row]
    }

    /// Returns the coefficients of the quotient, the last of which is 0.
    fn quotient(self, isa: Isa) -> Result<Vec<Scalar>, KernelError> {
        let Self { mut a, mut b } = self;
        let domain = Domain::with(isa, a.len().trailing_zeros())?;
        let mut scratch = vec![Scalar::ZERO; a.len()];
        quotient_with(&domain, &mut a, &mut b, &mut scratch, isa.into())?;
        Ok(a)
    }
}

/// The multipliers of A, B and C, and which of them a row has used.
struct Unknowns {
    values: [Vec<Scalar>; 3],
    is_used: [Vec<bool>; 3],
}

impl Unknowns {
    fn draw(program: &Program<Scalar>, rng: &mut ChaCha8Rng) -> Self {
        let (variables, inputs) = (program.num_variables(), program.num_inputs());
        let mut values = [(); 3].map(|()| random(variables, rng));
        let mut is_used = [(); 3].map(|()| vec![false; variables]);
        // The rows `inputᵢ · 0 = 0` have only this unknown.
        values[0][..inputs].fill(Scalar::ZERO);
        is_used[0][..inputs].fill(true);
        Self { values, is_used }
    }

    /// Makes the equation of a row hold by one unknown that no row before it has. Returns
    /// false if the row has none and does not hold.
    fn solve(&mut self, terms: &[Vec<RowTerm<Scalar>>; 3], product: Scalar) -> bool {
        let mut own = None;
        let mut rest = product;
        // Most rows bring a new variable into C.
        for (matrix, terms) in terms.iter().enumerate().rev() {
            for &(column, coefficient) in terms {
                let column = column as usize;
                let was_used = std::mem::replace(&mut self.is_used[matrix][column], true);
                match &mut own {
                    None if !was_used => own = Some((matrix, column, coefficient)),
                    // A column may be in a row twice.
                    Some((own_matrix, own_column, sum))
                        if (*own_matrix, *own_column) == (matrix, column) =>
                    {
                        *sum += coefficient;
                    }
                    _ => rest -= coefficient * self.values[matrix][column],
                }
            }
        }
        let Some((matrix, column, coefficient)) = own else {
            return rest.is_zero_vartime();
        };
        let Some(inverse) = Option::<Scalar>::from(coefficient.invert()) else {
            return false;
        };
        self.values[matrix][column] = rest * inverse;
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

    use bellperson::{Circuit, ConstraintSystem, SynthesisError};
    use cuzk_kernels::quotient::quotient;
    use cuzk_testing::circuits::{Mimc, Sha256Chain};
    use rand::SeedableRng;

    use super::*;

    /// Returns an assignment with the number of passes that it took.
    fn draw(program: &Program<Scalar>) -> (Result<Assignment, NoAssignment>, usize) {
        let mut passes = 0;
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let drawn = Assignment::draw(program, Isa::PORTABLE, &mut rng, |pass| {
            assert_eq!(pass, passes);
            passes += 1;
        });
        (drawn, passes)
    }

    /// The slow twin: each row is computed by itself, term by term, once the values are drawn.
    fn check(program: &Program<Scalar>, drawn: &Assignment) {
        let sum = |terms: &[RowTerm<Scalar>], values: &[Scalar]| -> Scalar {
            let terms = terms.iter();
            let products =
                terms.map(|&(column, coefficient)| coefficient * values[column as usize]);
            products.sum()
        };
        let [x, y, z] = &drawn.multipliers;
        let [mut a, mut b] = [(); 2].map(|()| vec![Scalar::ZERO; domain_len(program)]);
        for (row, [in_a, in_b, in_c]) in program.unfold().enumerate() {
            (a[row], b[row]) = (sum(&in_a, &drawn.witness), sum(&in_b, &drawn.witness));
            let combined = sum(&in_a, x) + sum(&in_b, y) + sum(&in_c, z);
            assert_eq!(combined, a[row] * b[row], "row {row}");
        }
        // The rows that Groth16 appends.
        for input in 0..program.num_inputs() {
            a[program.rows() + input] = drawn.witness[input];
            assert_eq!(x[input], Scalar::ZERO, "input {input}");
        }
        let domain = Domain::with(Isa::PORTABLE, a.len().trailing_zeros()).unwrap();
        quotient(&domain, &mut a, &mut b).unwrap();
        assert!(drawn.quotient == a);
    }

    #[test]
    fn the_equation_of_each_row_holds() {
        let mimc = cuzk_pce::compile(Mimc::blank(20)).unwrap();
        let sha256 = cuzk_pce::compile(Sha256Chain::blank(1)).unwrap();
        for program in [mimc, sha256] {
            let (drawn, _) = draw(&program);
            check(&program, &drawn.unwrap());
        }
    }

    /// The product of a variable and another, with each of the coefficients. The second row has
    /// no unknown that the first has not.
    struct Twice([u64; 2]);

    impl Circuit<Scalar> for Twice {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            let mut variable =
                || cs.alloc(|| "variable", || Err(SynthesisError::AssignmentMissing));
            let [a, b, c] = [variable()?, variable()?, variable()?];
            for coefficient in self.0 {
                let coefficient = Scalar::from(coefficient);
                cs.enforce(
                    || "product",
                    |terms| terms + (coefficient, a),
                    |terms| terms + b,
                    |terms| terms + c,
                );
            }
            Ok(())
        }
    }

    #[test]
    fn a_row_without_an_unknown_of_its_own_holds_or_is_told() {
        let same = cuzk_pce::compile(Twice([3, 3])).unwrap();
        let (drawn, passes) = draw(&same);
        check(&same, &drawn.unwrap());
        assert_eq!(passes, 1);
        let other = cuzk_pce::compile(Twice([3, 4])).unwrap();
        let (drawn, passes) = draw(&other);
        assert!(matches!(drawn, Err(NoAssignment::Unsolved { rows: 2 })));
        assert_eq!(passes, PASSES_MAX);
    }

    /// So many pairs of rows, `a · b = c + d` and `4a · b = c`. The second has no unknown of its own
    /// unless it comes first.
    struct Pairs(usize);

    impl Circuit<Scalar> for Pairs {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            for _ in 0..self.0 {
                let mut variable =
                    || cs.alloc(|| "variable", || Err(SynthesisError::AssignmentMissing));
                let [a, b] = [variable()?, variable()?];
                let [c, d] = [variable()?, variable()?];
                cs.enforce(|| "sum", |lc| lc + a, |lc| lc + b, |lc| lc + c + d);
                let four = Scalar::from(4);
                cs.enforce(|| "one", |lc| lc + (four, a), |lc| lc + b, |lc| lc + c);
            }
            Ok(())
        }
    }

    #[test]
    fn rows_that_come_first_are_moved_at_once() {
        let program = cuzk_pce::compile(Pairs(PASSES_MAX + 4)).unwrap();
        let (drawn, passes) = draw(&program);
        check(&program, &drawn.unwrap());
        assert_eq!(passes, 2);
    }

    #[test]
    fn a_column_may_be_in_a_row_twice() {
        let [one, two, three] = [1, 2, 3].map(Scalar::from);
        let mut unknowns = Unknowns {
            values: [(); 3].map(|()| vec![three; 2]),
            is_used: [(); 3].map(|()| vec![false; 2]),
        };
        unknowns.is_used[0][0] = true;
        // 1 · 3 in A, and 3 · v in C, is 15.
        let terms = [vec![(0, one)], vec![], vec![(1, one), (1, two)]];
        assert!(unknowns.solve(&terms, Scalar::from(15)));
        assert_eq!(unknowns.values[2][1], Scalar::from(4));
        assert_eq!(unknowns.values[0][0], three);
    }

    #[test]
    fn the_memory_is_that_of_the_vectors() {
        let [of_variable, of_place] = [4 * 32 + 3, 3 * 32 + 16];
        assert_eq!(Assignment::bytes(10, 16), 10 * of_variable + 16 * of_place);
    }
}
