//! The work beside the MSM, and its reactions to a raised throttle.

/// The work beside the MSM.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    Csr,
    Compiled,
    /// Witnesses of a PoRep's partition, each followed by an evaluation of the compiled
    /// circuit.
    Synthesis,
}

impl Workload {
    pub(crate) const ALL: [Workload; 3] = [Workload::Csr, Workload::Compiled, Workload::Synthesis];

    /// Returns the name of the arm without an MSM.
    pub(crate) fn alone(self) -> &'static str {
        match self {
            Workload::Csr => "evaluation alone",
            Workload::Compiled => "compiled, alone",
            Workload::Synthesis => "synthesis, alone",
        }
    }

    /// Returns the arm that does this work without a look at the throttle.
    pub(crate) fn off(self) -> Arm {
        match self {
            Workload::Csr => Arm::Off,
            Workload::Compiled => Arm::CompiledOff,
            Workload::Synthesis => Arm::SynthesisOff,
        }
    }
}

/// The reaction of the evaluation while the throttle is raised.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arm {
    Off,
    Yield,
    Sleep,
    ParkEveryChunk,
    FewerThreads,
    CompiledOff,
    CompiledSleep,
    SynthesisOff,
    SynthesisSleep,
    SynthesisAside,
}

impl Arm {
    pub(crate) const ALL: [Arm; 10] = [
        Arm::Off,
        Arm::Yield,
        Arm::Sleep,
        Arm::ParkEveryChunk,
        Arm::FewerThreads,
        Arm::CompiledOff,
        Arm::CompiledSleep,
        Arm::SynthesisOff,
        Arm::SynthesisSleep,
        Arm::SynthesisAside,
    ];

    /// Returns the name for tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Arm::Off => "off",
            Arm::Yield => "yield every 64th",
            Arm::Sleep => "sleep every 64th",
            Arm::ParkEveryChunk => "sleep every chunk",
            Arm::FewerThreads => "every second thread sleeps",
            Arm::CompiledOff => "compiled, off",
            Arm::CompiledSleep => "compiled, sleep every chunk",
            Arm::SynthesisOff => "synthesis, off",
            Arm::SynthesisSleep => "synthesis, evaluation sleeps",
            Arm::SynthesisAside => "synthesis, witness too",
        }
    }

    /// Returns the work that reacts.
    pub(crate) fn work(self) -> Workload {
        match self {
            Arm::Off | Arm::Yield | Arm::Sleep | Arm::ParkEveryChunk | Arm::FewerThreads => {
                Workload::Csr
            }
            Arm::CompiledOff | Arm::CompiledSleep => Workload::Compiled,
            Arm::SynthesisOff | Arm::SynthesisSleep | Arm::SynthesisAside => Workload::Synthesis,
        }
    }
}
