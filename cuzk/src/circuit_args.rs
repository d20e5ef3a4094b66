//! The arguments that name a circuit, for all commands that have one.

use clap::Args;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};

/// The circuit to work on.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CircuitArgs {
    /// porep, winning-post, window-post or snap-deals.
    #[arg(long)]
    pub(crate) kind: ProofKind,
    /// 2KiB, 8MiB, 512MiB, 32GiB or 64GiB, in any case, or as a number of bytes.
    #[arg(long)]
    pub(crate) sector_size: SectorSize,
}

impl CircuitArgs {
    /// Returns the circuit.
    pub(crate) fn id(self) -> CircuitId {
        CircuitId {
            kind: self.kind,
            sector_size: self.sector_size,
        }
    }
}
