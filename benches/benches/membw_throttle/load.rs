//! The loads: an MSM, and the number of threads that synthesis has beside it.

use crate::arm::{Arm, Workload};
use benches::{g2::Kernel, mode::cores, msm::Scalars};

/// One MSM, with synthesis beside it.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) kernel: Kernel,
    pub(crate) points: usize,
    pub(crate) scalars: Scalars,
    /// True if synthesis has all cores, false if it has one thread.
    pub(crate) on_all: bool,
}

/// MSMs of about the same duration. The engine's kernel is the faster one, so its MSMs
/// are longer.
pub(crate) const LOADS: [Load; 6] = [
    CPP_WITNESS,
    Load {
        points: 1 << 13,
        scalars: Scalars::Uniform,
        ..CPP_WITNESS
    },
    ENGINE_WITNESS,
    Load {
        points: 1 << 15,
        scalars: Scalars::Uniform,
        ..ENGINE_WITNESS
    },
    Load {
        on_all: false,
        ..CPP_WITNESS
    },
    Load {
        on_all: false,
        ..ENGINE_WITNESS
    },
];

const CPP_WITNESS: Load = Load {
    kernel: Kernel::Cpp,
    points: 1 << 17,
    scalars: Scalars::Witness,
    on_all: true,
};

const ENGINE_WITNESS: Load = Load {
    kernel: Kernel::Engine,
    points: 1 << 18,
    ..CPP_WITNESS
};

pub(crate) const SMOKE_LOADS: [Load; 3] = [
    SMOKE,
    Load {
        kernel: Kernel::Engine,
        ..SMOKE
    },
    Load {
        on_all: false,
        ..SMOKE
    },
];

const SMOKE: Load = Load {
    kernel: Kernel::Cpp,
    points: 64,
    scalars: Scalars::Uniform,
    on_all: true,
};

impl Load {
    /// Returns the load for tables: the MSM, and the threads beside it.
    pub(crate) fn name(self) -> String {
        let Load {
            kernel, scalars, ..
        } = self;
        let threads = self.threads();
        format!(
            "{}, {} {}, beside {threads}",
            kernel.name(),
            scalars.name(),
            self.points
        )
    }

    /// Returns the number of threads of synthesis.
    pub(crate) fn threads(self) -> usize {
        if self.on_all { cores() } else { 1 }
    }

    /// Returns the arms that are measured beside the MSM. Arms that no engine has are
    /// measured beside one kernel only. One thread has only the engine's arms.
    pub(crate) fn arms(self) -> Vec<Arm> {
        let only_cpp = [
            Arm::Yield,
            Arm::ParkEveryChunk,
            Arm::FewerThreads,
            Arm::SynthesisSleep,
        ];
        let mut arms = Arm::ALL.to_vec();
        arms.retain(|arm| self.kernel == Kernel::Cpp || !only_cpp.contains(arm));
        arms.retain(|arm| self.on_all || arm.work() != Workload::Csr);
        arms
    }
}
