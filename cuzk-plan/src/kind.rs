//! The circuits, by their sizes.
//!
//! Not the circuits themselves: this crate knows nothing of proofs. The numbers were
//! counted on the blank circuits of the reference, as `cuzk pce build` counts them.

use std::fmt;

use cuzk_scheduler::priority::Priority;
use serde::{Deserialize, Serialize};

/// A kind of proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The proof of a sealed sector.
    Porep,
    /// The proof of an updated sector.
    SnapDeals,
    /// The daily proof of stored sectors, a partition of a deadline a proof.
    WindowPost,
    /// The proof of a block's winner.
    WinningPost,
}

/// The size of the sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SectorSize {
    /// 2 KiB, for tests.
    #[serde(rename = "2KiB")]
    KiB2,
    /// 32 GiB.
    #[serde(rename = "32GiB")]
    GiB32,
}

/// The size of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The partitions of a proof.
    pub partitions: u32,
    /// The constraints of a partition.
    pub constraints: u64,
    /// The bytes of the parameter file.
    pub parameter_bytes: u64,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::Porep,
        Self::SnapDeals,
        Self::WindowPost,
        Self::WinningPost,
    ];

    /// Returns the name, as files and commands write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Porep => "porep",
            Self::SnapDeals => "snap-deals",
            Self::WindowPost => "window-post",
            Self::WinningPost => "winning-post",
        }
    }

    /// Returns the priority that the engine gives to this kind.
    #[must_use]
    pub fn priority(self) -> Priority {
        match self {
            Self::Porep | Self::SnapDeals => Priority::Normal,
            Self::WindowPost => Priority::High,
            Self::WinningPost => Priority::Critical,
        }
    }

    /// Returns true if other work waits for this kind.
    #[must_use]
    pub fn is_critical(self) -> bool {
        self.priority() == Priority::Critical
    }

    /// Returns the size of this kind's circuit.
    #[must_use]
    pub fn shape(self, size: SectorSize) -> Shape {
        let (partitions, constraints, parameter_bytes) = match (self, size) {
            (Self::Porep, SectorSize::KiB2) => (1, 2_687_921, 1_110_000_000),
            (Self::Porep, SectorSize::GiB32) => (10, 130_278_541, 47_400_000_000),
            (Self::SnapDeals, SectorSize::KiB2) => (1, 1_705_039, 650_000_000),
            (Self::SnapDeals, SectorSize::GiB32) => (16, 81_049_499, 34_500_000_000),
            (Self::WindowPost, SectorSize::KiB2) => (1, 21_866, 9_000_000),
            (Self::WindowPost, SectorSize::GiB32) => (1, 125_000_000, 60_800_000_000),
            (Self::WinningPost, SectorSize::KiB2) => (1, 90_750, 46_000_000),
            (Self::WinningPost, SectorSize::GiB32) => (1, 370_590, 193_000_000),
        };
        Shape {
            partitions,
            constraints,
            parameter_bytes,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl SectorSize {
    /// Returns the name, as files and commands write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KiB2 => "2KiB",
            Self::GiB32 => "32GiB",
        }
    }
}

impl Shape {
    /// Returns the points of the domain: the next power of two.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.constraints.next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_the_real_ones() {
        for (kind, size, log2) in [
            (Kind::Porep, SectorSize::KiB2, 22),
            (Kind::Porep, SectorSize::GiB32, 27),
            (Kind::SnapDeals, SectorSize::GiB32, 27),
            (Kind::WinningPost, SectorSize::KiB2, 17),
            (Kind::WinningPost, SectorSize::GiB32, 19),
        ] {
            assert_eq!(kind.shape(size).points(), 1 << log2, "{kind}");
        }
    }
}
