//! Which columns are boolean, told from the rows alone.
//!
//! A row proves a column z boolean in one of two ways. In the first, z is its only
//! variable, and 0 and 1 are exactly the solutions of the row. In the second, z stands in C
//! only, and every other variable of the row is known to be boolean. Then z = (A·B − C′) /
//! c_z must be 0 or 1 for *every* choice of them. Products, XOR, NOR and choice look like
//! that. The second proof tries all choices, so it holds for any gadget, and needs to
//! recognise none.
//!
//! One gadget needs more: SHA-256's majority of x, y, z uses an auxiliary yz = y·z, and is
//! boolean only because of that. So a variable that an earlier row fixed may be computed
//! from that row, instead of being chosen. The row's variables must be among the chosen
//! ones.
//!
//! Invariant: a column that is called boolean is 0 or 1 in every witness that
//! satisfies the rows. The converse is not promised.

use super::rows::{INPUT_BIT, Term};
use ff::PrimeField;

/// A row of more variables than this is not tried: 2^4 choices at most.
const VARIABLES_MAX: usize = 5;

/// The statement of a shape about a column, given the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    /// It proves nothing.
    Nothing,
    /// It proves this column, counted back from the cursor, on its own.
    Alone { z: u32 },
    /// It fixes `z` given `others`, and z is boolean if they all are. With
    /// `only_if_linked`, the rest must also fix one of the others.
    Given {
        z: u32,
        others: Vec<u32>,
        only_if_linked: bool,
    },
}

/// The three parts of a row, in relative form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowTerms {
    pub(super) a: Vec<Term>,
    pub(super) b: Vec<Term>,
    pub(super) c: Vec<Term>,
}

impl RowTerms {
    fn all(&self) -> impl Iterator<Item = &Term> {
        self.a.iter().chain(&self.b).chain(&self.c)
    }

    /// The newest auxiliary column, counted back; 0 if there is none.
    pub(super) fn newest(&self) -> u32 {
        let aux = self.all().filter(|term| term.col & INPUT_BIT == 0);
        aux.map(|term| term.col).min().unwrap_or(0)
    }

    /// The auxiliary columns, newest first; `None` if an input other than ONE
    /// is there, whose value nothing is known about.
    fn variables(&self) -> Option<Vec<u32>> {
        if self
            .all()
            .any(|term| term.col & !INPUT_BIT != 0 && term.col & INPUT_BIT != 0)
        {
            return None;
        }
        let mut cols: Vec<u32> = self.all().map(|term| term.col).collect();
        cols.retain(|col| col & INPUT_BIT == 0);
        cols.sort_unstable();
        cols.dedup();
        Some(cols)
    }

    /// The rule of this row. `values` are the coefficients by name.
    pub(super) fn rule<S: PrimeField>(&self, values: &[S]) -> Rule {
        // Most long rows are packings; finding that out must stay cheap.
        if self.a.len().max(self.b.len()).max(self.c.len()) > 2 * VARIABLES_MAX {
            return Rule::Nothing;
        }
        match self.variables() {
            Some(cols) if cols.len() == 1 && self.is_boolean_constraint(cols[0], values) => {
                Rule::Alone { z: cols[0] }
            }
            Some(cols) if !cols.is_empty() && cols.len() <= VARIABLES_MAX => {
                self.rule_given(&cols, values)
            }
            _ => Rule::Nothing,
        }
    }

    /// Returns true if the row is a quadratic equation in `z` with solutions 0 and 1.
    fn is_boolean_constraint<S: PrimeField>(&self, z: u32, values: &[S]) -> bool {
        let holds = |value: S| {
            let at = |part: &[Term]| sum(part, values, |col| (col == z).then_some(value));
            match (at(&self.a), at(&self.b), at(&self.c)) {
                (Some(a), Some(b), Some(c)) => a * b == c,
                _ => false,
            }
        };
        let slope = |part: &[Term]| {
            let terms = part.iter().filter(|term| term.col == z);
            terms
                .map(|term| values[term.coefficient as usize])
                .sum::<S>()
        };
        let is_quadratic = !(slope(&self.a) * slope(&self.b)).is_zero_vartime();
        is_quadratic && holds(S::ZERO) && holds(S::ONE)
    }

    fn rule_given<S: PrimeField>(&self, cols: &[u32], values: &[S]) -> Rule {
        let is_fixed = |&z: &u32| {
            let in_factors = self.a.iter().chain(&self.b).any(|term| term.col == z);
            !in_factors && self.c.iter().any(|term| term.col == z)
        };
        let Some(z) = cols.iter().copied().find(is_fixed) else {
            return Rule::Nothing;
        };
        let others: Vec<u32> = cols.iter().copied().filter(|&col| col != z).collect();
        let only_if_linked = !self.always_boolean(z, &others, None, values);
        Rule::Given {
            z,
            others,
            only_if_linked,
        }
    }

    /// Returns true if `z` is 0 or 1 for every boolean choice of `others`. With a `link`,
    /// another row fixes one of them.
    pub(super) fn always_boolean<S: PrimeField>(
        &self,
        z: u32,
        others: &[u32],
        link: Option<&Link<'_>>,
        values: &[S],
    ) -> bool {
        (0u32..1 << others.len()).all(|choice| {
            let chosen = |col| {
                let at = others.iter().position(|&other| other == col)?;
                Some(if choice >> at & 1 == 1 {
                    S::ONE
                } else {
                    S::ZERO
                })
            };
            if let Some(link) = link {
                let known = |col: u32| chosen(col.checked_add(link.distance)?);
                match link.row.solve(link.z, values, known) {
                    // It does not follow from the choices, so nothing does.
                    None => return false,
                    // No witness has these values.
                    fixed if fixed != known(link.z) => return true,
                    Some(_) => {}
                }
            }
            let z = self.solve(z, values, chosen);
            z.is_some_and(|z| z == S::ZERO || z == S::ONE)
        })
    }

    /// The value of `z`, which stands in C only, given the others.
    fn solve<S: PrimeField>(
        &self,
        z: u32,
        values: &[S],
        known: impl Fn(u32) -> Option<S>,
    ) -> Option<S> {
        let known_or_zero = |col| if col == z { Some(S::ZERO) } else { known(col) };
        let a = sum(&self.a, values, known_or_zero)?;
        let b = sum(&self.b, values, known_or_zero)?;
        let rest = sum(&self.c, values, known_or_zero)?;
        let own = self.c.iter().find(|term| term.col == z)?;
        let inverse = Option::<S>::from(values[own.coefficient as usize].invert())?;
        Some((a * b - rest) * inverse)
    }
}

/// An earlier row that fixes one of a row's variables.
#[derive(Debug)]
pub(super) struct Link<'a> {
    /// The earlier row.
    pub(super) row: &'a RowTerms,
    /// The variable it fixes, counted back from its own cursor.
    pub(super) z: u32,
    /// How far the cursor has moved since.
    pub(super) distance: u32,
}

/// The sum of a part; `None` if a variable's value is not known.
fn sum<S: PrimeField>(part: &[Term], values: &[S], known: impl Fn(u32) -> Option<S>) -> Option<S> {
    part.iter().try_fold(S::ZERO, |sum, term| {
        let value = match term.col {
            INPUT_BIT => S::ONE,
            col => known(col)?,
        };
        Some(sum + value * values[term.coefficient as usize])
    })
}

#[cfg(test)]
mod tests {
    use crate::compile;
    use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
    use blstrs::Scalar;

    /// Two bits x and y, a free u, a public input p, then z and one more row.
    #[derive(Clone, Copy)]
    enum Last {
        Product,
        ProductWithFree,
        Sum,
        TwiceTheProduct,
        ZeroOrTwo,
        ZeroOrOneOrAnything,
        MajorityOfUnlinkedBits,
        ProductWithInput,
        LinearInZ,
    }

    impl Circuit<Scalar> for Last {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            const NO: SynthesisError = SynthesisError::AssignmentMissing;
            let p = cs.alloc_input(|| "p", || Err(NO))?;
            let mut bit = || {
                let x = cs.alloc(|| "x", || Err(NO))?;
                cs.enforce(|| "x", |lc| lc + x, |lc| lc + CS::one() - x, |lc| lc);
                Ok::<_, SynthesisError>(x)
            };
            let [x, y, w] = [bit()?, bit()?, bit()?];
            let u = cs.alloc(|| "u", || Err(NO))?;
            let z = cs.alloc(|| "z", || Err(NO))?;
            let [a, b, c] = self.row([x, y, w, u, z, p, CS::one()]);
            cs.enforce(|| "row", |_| a, |_| b, |_| c);
            Ok(())
        }
    }

    impl Last {
        fn row(self, [x, y, w, u, z, p, one]: [Variable; 7]) -> [LinearCombination<Scalar>; 3] {
            let two = Scalar::from(2);
            let lc = LinearCombination::zero;
            match self {
                Last::Product => [lc() + x, lc() + y, lc() + z],
                Last::ProductWithFree => [lc() + x, lc() + u, lc() + z],
                Last::Sum => [lc() + x + y, lc() + one, lc() + z],
                Last::TwiceTheProduct => [lc() + (two, x), lc() + y, lc() + z],
                Last::ZeroOrTwo => [lc() + z, lc() + (two, one) - z, lc()],
                Last::ZeroOrOneOrAnything => [lc() + z - z, lc() + one - z, lc()],
                // w stands where the product of x and y would have to.
                Last::MajorityOfUnlinkedBits => [lc() + (two, w) - x - y, lc() + x, lc() + w - z],
                Last::ProductWithInput => [lc() + x, lc() + p, lc() + z],
                Last::LinearInZ => [lc() + z, lc() + x, lc() + y],
            }
        }
    }

    #[test]
    fn only_what_follows_is_called_boolean() {
        let columns = |last: Last| {
            let columns = compile(last).unwrap().boolean_columns();
            columns.iter().collect::<Vec<_>>()
        };
        assert_eq!(columns(Last::Product), [0, 1, 2, 4]);
        for last in [
            Last::ProductWithFree,
            Last::Sum,
            Last::TwiceTheProduct,
            Last::ZeroOrTwo,
            Last::ZeroOrOneOrAnything,
            Last::MajorityOfUnlinkedBits,
            Last::ProductWithInput,
            Last::LinearInZ,
        ] {
            assert_eq!(columns(last), [0, 1, 2]);
        }
    }
}
