//! The constants of a Poseidon hash, as whoever derives them gives them.

use blstrs::Scalar;

/// The largest width, tag and preimage together.
pub const MAX_WIDTH: usize = 12;

/// Constants in the optimised schedule. The width is that of `matrix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoseidonConstants {
    /// The first element of the state, which tells uses of the hash apart.
    pub domain_tag: Scalar,
    /// Full rounds, half of them before the partial rounds; even, at least 4.
    pub full_rounds: usize,
    /// The keys, in the order in which they are added. Before the first S-boxes there is a
    /// key for each element. Behind the S-boxes of every round but the last there is a key
    /// for each S-box.
    pub round_keys: Vec<Scalar>,
    /// The matrix of the full rounds: element j of the new state is
    /// Σᵢ `matrix[i][j]`·stateᵢ.
    pub matrix: Vec<Vec<Scalar>>,
    /// The matrix of the last full round before the partial rounds, as `matrix`.
    pub pre_sparse: Vec<Vec<Scalar>>,
    /// Matrices of the partial rounds.
    pub sparse: Vec<SparseMatrix>,
}

/// A matrix that is the identity but for its first column and row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparseMatrix {
    /// The first column: the new first element is Σᵢ `column[i]`·stateᵢ.
    pub column: Vec<Scalar>,
    /// The rest of the first row: `row[j − 1]`·state₀ is added to element j.
    pub row: Vec<Scalar>,
}
