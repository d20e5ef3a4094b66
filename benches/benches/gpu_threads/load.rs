//! The loads: an MSM, the work beside it, and the ways in which that work makes room.

use benches::{
    g2::Kernel,
    mode::{Mode, cores},
    msm::Scalars,
};

/// The least work of both sides in one sample. When they run beside each other, the side
/// that is done continues until the other is done, too. So no side ever runs alone.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) points: usize,
    pub(crate) scalars: Scalars,
    pub(crate) msms: usize,
    pub(crate) other: Other,
    pub(crate) hashes: usize,
    pub(crate) others: usize,
    pub(crate) kernels: &'static [Kernel],
}

/// The work beside the MSM.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Other {
    /// A witness and then an evaluation.
    Synthesis,
    Witness,
    Evaluation,
}

impl Other {
    /// Returns the name for tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Other::Synthesis => "synthesis",
            Other::Witness => "witness",
            Other::Evaluation => "evaluation",
        }
    }
}

/// The way in which the other side makes room for the MSM.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It has all cores, and makes no room.
    Beside,
    /// It runs on the cores that the MSM leaves, for as long as both run.
    Rest,
}

impl Way {
    /// All numbers of threads are compared with the last one.
    pub(crate) const ALL: [Way; 2] = [Way::Rest, Way::Beside];

    /// Returns the name for tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Beside => "all cores",
            Way::Rest => "the rest",
        }
    }

    /// Returns true if it differs from the other ways on so many threads.
    pub(crate) fn differs(self, threads: usize) -> bool {
        match self {
            Way::Beside => true,
            Way::Rest => threads < cores(),
        }
    }
}

const WITNESS_MSM: Load = Load {
    points: 1 << 17,
    scalars: Scalars::Witness,
    msms: 4,
    other: Other::Synthesis,
    hashes: 10,
    others: 3,
    kernels: &Kernel::ALL,
};

const LOADS: [Load; 4] = [
    WITNESS_MSM,
    Load {
        points: 1 << 14,
        scalars: Scalars::Uniform,
        msms: 2,
        ..WITNESS_MSM
    },
    // The parts of synthesis, beside the kernel that the engine has beside them.
    Load {
        other: Other::Witness,
        kernels: &[Kernel::Engine],
        ..WITNESS_MSM
    },
    Load {
        other: Other::Evaluation,
        others: 30,
        kernels: &[Kernel::Engine],
        ..WITNESS_MSM
    },
];

const SMOKE_LOADS: [Load; 1] = [Load {
    points: 64,
    scalars: Scalars::Uniform,
    msms: 1,
    other: Other::Synthesis,
    hashes: 1,
    others: 1,
    kernels: &Kernel::ALL,
}];

/// Returns the loads of the mode.
pub(crate) fn loads(mode: Mode) -> &'static [Load] {
    mode.pick(&LOADS[..], &SMOKE_LOADS)
}
