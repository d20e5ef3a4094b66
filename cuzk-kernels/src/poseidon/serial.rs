//! One permutation after the other: short and plainly right, and the twin of
//! the eight at a time.

use std::marker::PhantomData;

use crate::arithmetic::Arithmetic;
use crate::rounds::MAX_WIDTH;
use crate::rounds::schedule::Schedule;
use blstrs::Scalar;
use ff::Field;

/// See [`super::Poseidon::traces`].
pub(super) fn traces<A: Arithmetic>(
    schedule: &Schedule,
    preimages: &[Scalar],
    traces: &mut [Scalar],
) {
    let preimages = preimages.chunks_exact(schedule.width - 1);
    let traces = traces.chunks_exact_mut(schedule.trace_len());
    for (preimage, trace) in preimages.zip(traces) {
        let mut places = trace.iter_mut();
        permute::<A>(schedule, preimage, |value| {
            if let Some(place) = places.next() {
                *place = value;
            }
        });
    }
}

/// Gives the trace to `visit`, value by value; the last is the digest.
pub(super) fn permute<A: Arithmetic>(
    schedule: &Schedule,
    preimage: &[Scalar],
    mut visit: impl FnMut(Scalar),
) -> Scalar {
    let mut state = State::<A>::first_sbox(schedule, preimage, &mut visit);
    for (round, (keys, matrix)) in schedule.begin_rounds().enumerate() {
        if round > 0 {
            state.sboxes(keys, &mut visit);
        }
        state.multiply(matrix);
    }
    for (key, matrix) in schedule.partial_keys.iter().zip(&schedule.sparse) {
        state.elements[0] = sbox::<A>(state.elements[0], *key, &mut visit);
        state.multiply_sparse(&matrix.column, &matrix.row);
    }
    for keys in schedule.end_keys.chunks_exact(schedule.width) {
        state.sboxes(keys, &mut visit);
        state.multiply(&schedule.matrix);
    }
    state.sboxes(&[Scalar::ZERO; MAX_WIDTH], &mut visit);
    let factors = schedule.matrix.chunks_exact(schedule.width).nth(1);
    let digest = factors.map_or(Scalar::ZERO, |factors| state.dot(factors));
    visit(digest);
    digest
}

/// The permutation's state.
struct State<A> {
    elements: [Scalar; MAX_WIDTH],
    width: usize,
    arithmetic: PhantomData<A>,
}

impl<A: Arithmetic> State<A> {
    /// The state behind the first round's S-boxes.
    fn first_sbox(
        schedule: &Schedule,
        preimage: &[Scalar],
        mut visit: impl FnMut(Scalar),
    ) -> State<A> {
        let mut elements = [Scalar::ZERO; MAX_WIDTH];
        let keys = schedule.first_keys.iter().zip(&schedule.begin_keys);
        let inputs = [schedule.domain_tag];
        let inputs = inputs.iter().chain(preimage);
        for (i, ((element, input), (before, behind))) in
            elements.iter_mut().zip(inputs).zip(keys).enumerate()
        {
            let shown = i > 0;
            let mut sum = *input;
            A::add(&mut sum, before);
            *element = powers::<A>(sum, *behind, |value| {
                if shown {
                    visit(value);
                }
            });
        }
        State {
            elements,
            width: schedule.width,
            arithmetic: PhantomData,
        }
    }

    fn sboxes(&mut self, keys: &[Scalar], mut visit: impl FnMut(Scalar)) {
        for (element, key) in self.elements[..self.width].iter_mut().zip(keys) {
            *element = sbox::<A>(*element, *key, &mut visit);
        }
    }

    fn multiply(&mut self, matrix: &[Scalar]) {
        let mut product = [Scalar::ZERO; MAX_WIDTH];
        for (new, factors) in product.iter_mut().zip(matrix.chunks_exact(self.width)) {
            *new = self.dot(factors);
        }
        self.elements = product;
    }

    fn multiply_sparse(&mut self, column: &[Scalar], row: &[Scalar]) {
        let first = self.dot(column);
        let [head, rest @ ..] = &mut self.elements;
        for (element, factor) in rest.iter_mut().zip(row) {
            let mut product = *head;
            A::multiply(&mut product, factor);
            A::add(element, &product);
        }
        *head = first;
    }

    fn dot(&self, factors: &[Scalar]) -> Scalar {
        let mut sum = Scalar::ZERO;
        for (element, factor) in self.elements.iter().zip(factors) {
            let mut product = *element;
            A::multiply(&mut product, factor);
            A::add(&mut sum, &product);
        }
        sum
    }
}

/// x⁵ + key, of an x that has a variable.
fn sbox<A: Arithmetic>(x: Scalar, key: Scalar, mut visit: impl FnMut(Scalar)) -> Scalar {
    visit(x);
    powers::<A>(x, key, visit)
}

/// x⁵ + key.
fn powers<A: Arithmetic>(x: Scalar, key: Scalar, mut visit: impl FnMut(Scalar)) -> Scalar {
    let (mut square, mut fourth) = (x, x);
    A::square(&mut square, &x);
    A::square(&mut fourth, &square);
    let mut fifth = fourth;
    A::multiply(&mut fifth, &x);
    A::add(&mut fifth, &key);
    visit(square);
    visit(fourth);
    visit(fifth);
    fifth
}
