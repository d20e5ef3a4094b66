//! The swept settings: a pipeline, and the interventions that are turned on in it.
//!
//! Not the measurement. The invariant: an arm without interventions has all three turned
//! off, whatever the configuration says.

use std::fmt;
use std::str::FromStr;

use cuzk_core::Config;
use cuzk_groth16::CircuitForm;
use cuzk_memory::{Dealloc, ThrottleManner};
use serde::{Deserialize, Serialize};

/// The partitions that the seed's pipeline synthesises at a time.
const SEED_PARTITION_WORKERS: usize = 10;

/// The seed's gpu_threads were a sixth of the hardware threads: 32 of 192.
const SEED_SHARE: usize = 6;

/// The pipeline that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum Pipeline {
    /// As in configs/phase-9.toml.
    Seed,
    /// As configured.
    Ours,
}

/// The interventions that are on, or the configuration's own choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum Arm {
    /// As configured.
    Configured,
    /// By number, from 1: bounded deallocation, gpu_threads, throttle.
    Interventions([bool; 3]),
}

/// One point of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Setting {
    pub(super) pipeline: Pipeline,
    pub(super) arm: Arm,
    /// Proofs in all.
    pub(super) c: usize,
    /// Proofs in flight.
    pub(super) j: usize,
}

impl Arm {
    /// The arm that others are compared with.
    pub(super) const NONE: Self = Self::Interventions([false; 3]);

    fn has(self, intervention: usize) -> bool {
        match self {
            Self::Configured => false,
            Self::Interventions(on) => on.get(intervention - 1).copied().unwrap_or(false),
        }
    }
}

impl Setting {
    /// Returns the configuration of an engine with this setting. Arms with intervention 2
    /// have `gpu_threads`, or the seed's share of the cores.
    pub(super) fn configure(
        self,
        mut config: Config,
        cores: usize,
        gpu_threads: Option<usize>,
    ) -> Config {
        config.srs.multiples = Vec::new();
        let is_seed = self.pipeline == Pipeline::Seed;
        if is_seed {
            config.synthesis.circuit = CircuitForm::Plain;
            config.synthesis.partition_workers = SEED_PARTITION_WORKERS;
            config.gpus.gpu_workers_per_device = 2;
            config.pipeline.max_batch = 1;
        }
        if self.arm == Arm::Configured {
            return config;
        }
        config.memory.dealloc = match (self.arm.has(1), is_seed) {
            (false, _) => Dealloc::Unbounded,
            (true, true) => Dealloc::Serial,
            (true, false) => Dealloc::Recycle,
        };
        config.gpus.gpu_threads = if self.arm.has(2) {
            gpu_threads.unwrap_or((cores / SEED_SHARE).max(1))
        } else {
            cores
        };
        config.pipeline.throttle = self.arm.has(3);
        config.pipeline.throttle_manner = if is_seed {
            ThrottleManner::Yield
        } else {
            ThrottleManner::Sleep
        };
        config
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pipeline,
            arm,
            c,
            j,
        } = self;
        write!(f, "{pipeline}, arm {arm}, c={c}, j={j}")
    }
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Seed => "seed",
            Self::Ours => "ours",
        })
    }
}

impl FromStr for Pipeline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "seed" => Ok(Self::Seed),
            "ours" => Ok(Self::Ours),
            _ => Err("expected `seed` or `ours`".to_owned()),
        }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = (1..=3).filter(|&number| self.has(number)).collect();
        let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        match *self {
            Self::Configured => f.pad("configured"),
            Self::NONE => f.pad("none"),
            Self::Interventions(_) => f.pad(&numbers.join("+")),
        }
    }
}

impl FromStr for Arm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut on = [false; 3];
        match text {
            "configured" => return Ok(Self::Configured),
            "none" => return Ok(Self::NONE),
            _ => {}
        }
        for number in text.split('+') {
            let number: usize = number.parse().unwrap_or(0);
            let at = number.checked_sub(1).and_then(|at| on.get_mut(at));
            let Some(at) = at.filter(|on| !**on) else {
                let expected = "expected `none`, `configured`, or some of 1, 2 and 3 joined by \
                                `+`, each once";
                return Err(expected.to_owned());
            };
            *at = true;
        }
        Ok(Self::Interventions(on))
    }
}

impl From<Pipeline> for String {
    fn from(pipeline: Pipeline) -> Self {
        pipeline.to_string()
    }
}

impl TryFrom<String> for Pipeline {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Arm> for String {
    fn from(arm: Arm) -> Self {
        arm.to_string()
    }
}

impl TryFrom<String> for Arm {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_read_as_they_are_written() {
        for text in [
            "none",
            "configured",
            "1",
            "2",
            "3",
            "1+2",
            "1+3",
            "2+3",
            "1+2+3",
        ] {
            assert_eq!(text.parse::<Arm>().unwrap().to_string(), text);
        }
        assert_eq!("3+1".parse::<Arm>().unwrap().to_string(), "1+3");
        for bad in [
            "",
            "0",
            "4",
            "1+1",
            "1,2",
            "+",
            "all",
            "99999999999999999999",
        ] {
            assert!(
                bad.parse::<Arm>().unwrap_err().contains("1, 2 and 3"),
                "{bad}"
            );
        }
    }

    fn configured(pipeline: Pipeline, arm: &str) -> Config {
        let arm = arm.parse().unwrap();
        let setting = Setting {
            pipeline,
            arm,
            c: 1,
            j: 1,
        };
        setting.configure(Config::default(), 192, None)
    }

    #[test]
    fn each_intervention_sets_its_key_alone() {
        let off = configured(Pipeline::Seed, "none");
        assert_eq!(off.synthesis.circuit, CircuitForm::Plain);
        let keys = |config: &Config| {
            let throttle = config.pipeline.throttle;
            (config.memory.dealloc, config.gpus.gpu_threads, throttle)
        };
        assert_eq!(keys(&off), (Dealloc::Unbounded, 192, false));
        for (arm, expected) in [
            ("1", (Dealloc::Serial, 192, false)),
            ("2", (Dealloc::Unbounded, 32, false)),
            ("3", (Dealloc::Unbounded, 192, true)),
            ("1+2+3", (Dealloc::Serial, 32, true)),
        ] {
            assert_eq!(keys(&configured(Pipeline::Seed, arm)), expected, "{arm}");
        }
        let ours = configured(Pipeline::Ours, "1+2+3");
        assert_eq!(keys(&ours), (Dealloc::Recycle, 32, true));
        assert_eq!(ours.synthesis.circuit, CircuitForm::Compiled);
    }

    #[test]
    fn the_configured_arm_changes_no_key() {
        let mut config = Config::default();
        config.srs.multiples = Vec::new();
        assert_eq!(configured(Pipeline::Ours, "configured"), config);
    }
}
