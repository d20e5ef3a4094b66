//! Poseidon, eight permutations at a time.
//!
//! A sum of products is reduced once. Partial rounds are computed in blocks. Within a
//! block, an S-box's input is a sum over the state at the block's beginning and the S-boxes
//! since. The rest of the state is updated at the block's end.
//!
//! Bounds: an S-box's input is reduced, so it is below 1.01 r. Its square is below 1.5 r,
//! and its fourth power is below 2 r. The state besides the first element grows by less
//! than 1.2 r a block, and there is room for 31 r. It is reduced once in
//! [`BLOCKS_TO_REDUCTION`] blocks.

use blstrs::Scalar;
use ff::Field;

use super::Ifma;
use super::field::fr::{Fr, Words, word, words, words_mut};
use super::field::lanes::{LANES, to_limbs};
use crate::rounds::MAX_WIDTH;
use crate::rounds::schedule::Schedule;

/// Partial rounds of a block.
const BLOCK: usize = 4;

/// 1.5 + 24 · 1.2 is below 31.
const BLOCKS_TO_REDUCTION: usize = 24;

type Limbs = [u64; 5];

/// The schedule in limbs. Factors are sixteen times as large as their value.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    width: usize,
    /// The tag behind its S-box.
    tag: Limbs,
    first_keys: Vec<Limbs>,
    begin_keys: Vec<Limbs>,
    end_keys: Vec<Limbs>,
    matrix: Vec<Limbs>,
    pre_sparse: Vec<Limbs>,
    blocks: Vec<Block>,
}

/// Partial rounds that update the state together.
#[derive(Debug, Clone)]
struct Block {
    rounds: Vec<Round>,
    /// By element but the first: its S-boxes' factors.
    updates: Vec<Vec<Limbs>>,
}

#[derive(Debug, Clone)]
struct Round {
    key: Limbs,
    /// Of the next S-box's input: the factors of all elements but the first.
    elements: Vec<Limbs>,
    /// And those of the block's S-boxes up to this one.
    sboxes: Vec<Limbs>,
}

fn plain(scalar: &Scalar) -> Limbs {
    to_limbs(word(scalar))
}

fn factor(scalar: &Scalar) -> Limbs {
    plain(&(*scalar * Scalar::from(16)))
}

impl Tables {
    pub(crate) fn new(schedule: &Schedule) -> Tables {
        let plains = |scalars: &[Scalar]| scalars.iter().map(plain).collect();
        let factors = |scalars: &[Scalar]| scalars.iter().map(factor).collect();
        let tag = schedule.domain_tag + schedule.first_keys[0];
        let rounds: Vec<usize> = (0..schedule.sparse.len()).collect();
        let blocks = rounds.chunks(BLOCK);
        Tables {
            width: schedule.width,
            tag: plain(&(tag.square().square() * tag + schedule.begin_keys[0])),
            first_keys: plains(&schedule.first_keys),
            begin_keys: plains(&schedule.begin_keys),
            end_keys: plains(&schedule.end_keys),
            matrix: factors(&schedule.matrix),
            pre_sparse: factors(&schedule.pre_sparse),
            blocks: blocks.map(|block| Block::new(schedule, block)).collect(),
        }
    }
}

impl Block {
    fn new(schedule: &Schedule, rounds: &[usize]) -> Block {
        let row = |round: usize| &schedule.sparse[round].row;
        let updates = (0..schedule.width - 1)
            .map(|j| rounds.iter().map(|k| factor(&row(*k)[j])).collect())
            .collect();
        let rounds = rounds.iter().map(|&k| {
            let column = &schedule.sparse[k].column;
            // The additions of earlier S-boxes to the elements count too.
            let through = |earlier: usize| -> Scalar {
                let products = column[1..].iter().zip(row(earlier)).map(|(a, b)| a * b);
                products.sum()
            };
            let earlier = (rounds[0]..k).map(through);
            Round {
                key: plain(&schedule.partial_keys[k]),
                elements: column[1..].iter().map(factor).collect(),
                sboxes: earlier.chain([column[0]]).map(|f| factor(&f)).collect(),
            }
        });
        Block {
            rounds: rounds.collect(),
            updates,
        }
    }
}

/// See [`crate::poseidon::Poseidon::traces`]; lengths are right.
pub(crate) fn traces(token: Ifma, tables: &Tables, preimages: &[Scalar], traces: &mut [Scalar]) {
    let arity = tables.width - 1;
    let count = preimages.len() / arity;
    if count == 0 {
        return;
    }
    let length = traces.len() / count;
    let (mut spare, preimages) = (Vec::new(), words(preimages));
    let groups = preimages.chunks(arity * LANES);
    for (preimages, traces) in groups.zip(words_mut(traces).chunks_mut(length * LANES)) {
        // Lanes without a hash of their own repeat the first.
        let hashes = preimages.len() / arity;
        spare.resize((LANES - hashes) * length, [0; 4]);
        let mut outputs = traces
            .chunks_exact_mut(length)
            .chain(spare.chunks_exact_mut(length));
        let outputs = std::array::from_fn(|_| outputs.next().unwrap_or_default());
        let inputs = std::array::from_fn(|lane| {
            let at = if lane < hashes { lane } else { 0 };
            &preimages[at * arity..][..arity]
        });
        super::permute(token, tables, inputs, Trace { outputs, at: 0 });
    }
}

/// Where values go, one place further with each.
pub(super) struct Trace<'a> {
    outputs: [&'a mut [Words]; LANES],
    at: usize,
}

impl Trace<'_> {
    #[inline(always)]
    fn next(&mut self) -> [&mut Words; LANES] {
        let at = self.at;
        self.at += 1;
        self.outputs.each_mut().map(|output| &mut output[at])
    }

    /// A value below 2 r, carried.
    #[inline(always)]
    fn push(&mut self, value: &Fr) {
        value.scatter_below_2r(self.next());
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn permute(
    token: Ifma,
    tables: &Tables,
    preimages: [&[Words]; LANES],
    mut trace: Trace<'_>,
) {
    let mut state = State::first_sbox(token, tables, preimages, &mut trace);
    let width = tables.width;
    let keys = tables.begin_keys.chunks_exact(width);
    let last = keys.len() - 1;
    for (round, keys) in keys.enumerate() {
        if round > 0 {
            state.sboxes(keys, &mut trace);
        }
        state.multiply(if round == last {
            &tables.pre_sparse
        } else {
            &tables.matrix
        });
    }
    for (i, block) in tables.blocks.iter().enumerate() {
        if i % BLOCKS_TO_REDUCTION == BLOCKS_TO_REDUCTION - 1 {
            state.reduce();
        }
        state.block(block, &mut trace);
    }
    state.reduce();
    for keys in tables.end_keys.chunks_exact(width) {
        state.sboxes(keys, &mut trace);
        state.multiply(&tables.matrix);
    }
    state.sboxes(&[[0; 5]; MAX_WIDTH], &mut trace);
    let digest = Fr::dot(token, &state.elements[..width], &tables.matrix[width..]);
    trace.push(&digest.reduce());
}

/// Eight permutations' states. The first element is reduced.
struct State {
    token: Ifma,
    elements: [Fr; MAX_WIDTH],
    width: usize,
}

impl State {
    /// The states behind the first round's S-boxes.
    #[inline(always)]
    fn first_sbox(
        token: Ifma,
        tables: &Tables,
        preimages: [&[Words]; LANES],
        trace: &mut Trace<'_>,
    ) -> State {
        let width = tables.width;
        let mut elements = [Fr::splat(token, tables.tag); MAX_WIDTH];
        for (i, element) in elements.iter_mut().enumerate().take(width).skip(1) {
            let input = Fr::gather(token, preimages.map(|preimage| &preimage[i - 1]));
            let key = Fr::splat(token, tables.first_keys[i]);
            let input = input.add_lazy(&key).reduce();
            *element = powers(&input, &Fr::splat(token, tables.begin_keys[i]), trace);
        }
        State {
            token,
            elements,
            width,
        }
    }

    /// Of elements that are all reduced.
    #[inline(always)]
    fn sboxes(&mut self, keys: &[Limbs], trace: &mut Trace<'_>) {
        for (element, key) in self.elements[..self.width].iter_mut().zip(keys) {
            trace.push(element);
            *element = powers(element, &Fr::splat(self.token, *key), trace);
        }
    }

    #[inline(always)]
    fn multiply(&mut self, matrix: &[Limbs]) {
        let mut product = self.elements;
        for (new, factors) in product.iter_mut().zip(matrix.chunks_exact(self.width)) {
            *new = Fr::dot(self.token, &self.elements[..self.width], factors).reduce();
        }
        self.elements = product;
    }

    #[inline(always)]
    fn reduce(&mut self) {
        for element in &mut self.elements[1..self.width] {
            *element = element.reduce();
        }
    }

    #[inline(always)]
    fn block(&mut self, block: &Block, trace: &mut Trace<'_>) {
        let mut sboxes = [self.elements[0]; BLOCK];
        let mut input = self.elements[0];
        for (k, round) in block.rounds.iter().enumerate() {
            trace.push(&input);
            sboxes[k] = powers(&input, &Fr::splat(self.token, round.key), trace);
            let rest = &self.elements[1..self.width];
            input = Fr::dot2(
                self.token,
                (rest, &round.elements),
                (&sboxes[..=k], &round.sboxes),
            )
            .reduce();
        }
        self.elements[0] = input;
        for (element, factors) in self.elements[1..self.width].iter_mut().zip(&block.updates) {
            let update = Fr::dot(self.token, &sboxes[..factors.len()], factors);
            *element = element.add_lazy(&update).carried();
        }
    }
}

/// x⁵ + key of a reduced x, reduced.
#[inline(always)]
fn powers(x: &Fr, key: &Fr, trace: &mut Trace<'_>) -> Fr {
    let square = x.times_4().square();
    trace.push(&square);
    let fourth = square.times_4().square();
    trace.push(&fourth);
    let fifth = x.times_16().mul_lazy(&fourth).add_lazy(key).reduce();
    trace.push(&fifth);
    fifth
}
