//! From what the operator wrote to what the engine sees.
//!
//! Nothing here reads a file or the environment. The invariant: where nothing
//! is noted, the [`Config`] needs no further check.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use cuzk_groth16::memory::buffer::Dealloc;
use cuzk_kernels::{Isa, IsaError};
use cuzk_scheduler::priority::Patience;
use supraseal_sys::device::BG2;
use toml::Spanned;

use super::file::{self, DevicesText, Field, FileConfig, SizeText};
use super::host::Host;
use super::problem::{Finding, ProblemKind};
use super::resolved::{
    Config, Cpu, Devices, Gpus, Jobs, LogFormat, LogLevel, Logging, Memory, Pipeline, Srs,
    Synthesis,
};
use cuzk_filecoin::ProofKind;

/// Where the proofs libraries keep parameters unless told otherwise.
pub const PARAM_CACHE_DEFAULT: &str = "/var/tmp/filecoin-proof-parameters";

/// More threads, workers or waiting partitions than this is a typing error.
pub const COUNT_MAX: u64 = 4096;

/// Longer times than this, ten years, are typing errors.
pub const SECONDS_MAX: u64 = 10 * 366 * 24 * 3600;

/// Larger sizes than this (1 EiB) are typing errors; the unit was wrong.
pub const SIZE_MAX_BYTES: u64 = 1 << 60;

/// Assumed where the machine does not tell its memory: small enough to be
/// there, large enough for test sectors.
const MEMORY_UNKNOWN_BYTES: u64 = 4 << 30;

/// The automatic safety margin is a tenth of the budget, at most this.
const MARGIN_AUTO_MAX_BYTES: u64 = 16 << 30;

/// The automatic reserve is an eighth of what may be used, at most this: a WinningPoSt
/// of 32 GiB sectors fits with its files, on up to 64 threads.
const RESERVE_AUTO_MAX_BYTES: u64 = 1792 << 20;

/// What the file says, completed and checked against the machine. Everything
/// that is wrong goes to `findings`; where there is any, the result must not be
/// used.
pub(super) fn resolve(file: &FileConfig, host: &Host, findings: &mut Vec<Finding>) -> Config {
    let mut check = Check { host, findings };
    Config {
        srs: check.srs(&file.srs),
        synthesis: check.synthesis(&file.synthesis),
        gpus: check.gpus(&file.gpus),
        cpu: Cpu {
            isa: check.isa(&file.cpu.isa),
        },
        memory: check.memory(&file.memory),
        pipeline: check.pipeline(&file.pipeline),
        jobs: check.jobs(&file.jobs),
        logging: check.logging(&file.logging),
    }
}

/// The checks of sections and of single values; what fails them is noted and
/// defaulted, so that the rest is checked too.
struct Check<'a> {
    host: &'a Host,
    findings: &'a mut Vec<Finding>,
}

impl Check<'_> {
    fn note<T>(&mut self, section: &str, key: &str, at: &Spanned<T>, kind: ProblemKind) {
        self.findings.push(Finding {
            at: at.span().start,
            section: section.to_owned(),
            key: key.to_owned(),
            kind,
        });
    }

    fn srs(&mut self, section: &file::SrsSection) -> Srs {
        Srs {
            param_cache: self.param_cache(&section.param_cache),
            multiples: self.multiples(&section.multiples),
        }
    }

    fn synthesis(&mut self, section: &file::SynthesisSection) -> Synthesis {
        let name = "synthesis";
        Synthesis {
            threads: self.threads(name, "threads", &section.threads),
            partition_workers: self.count(name, "partition_workers", &section.partition_workers, 1),
        }
    }

    fn gpus(&mut self, section: &file::GpusSection) -> Gpus {
        let name = "gpus";
        let workers = &section.gpu_workers_per_device;
        Gpus {
            devices: self.devices(&section.devices),
            gpu_threads: self.threads(name, "gpu_threads", &section.gpu_threads),
            gpu_workers_per_device: self.count(name, "gpu_workers_per_device", workers, 2),
            faults_max: self.faults_max(&section.faults_max),
            stall: self.seconds(name, "stall_s", &section.stall_s, 600),
            rest: self.seconds(name, "rest_s", &section.rest_s, 300),
            b_g2: self
                .word(name, "b_g2", &section.b_g2, &BG2::ALL, BG2::as_str)
                .unwrap_or_default(),
            memory_limit_bytes: self.size(name, "memory_limit", &section.memory_limit),
        }
    }

    fn pipeline(&mut self, section: &file::PipelineSection) -> Pipeline {
        let name = "pipeline";
        let lookahead = &section.synthesis_lookahead;
        let throttle = section.throttle.as_ref();
        Pipeline {
            synthesis_lookahead: self.count(name, "synthesis_lookahead", lookahead, 1),
            finish_workers: self.count(name, "finish_workers", &section.finish_workers, 1),
            throttle: throttle.is_some_and(|throttle| *throttle.get_ref()),
        }
    }

    fn logging(&mut self, section: &file::LoggingSection) -> Logging {
        let name = "logging";
        let (levels, formats) = (&LogLevel::ALL, &LogFormat::ALL);
        Logging {
            level: self
                .word(name, "level", &section.level, levels, LogLevel::as_str)
                .unwrap_or(LogLevel::Info),
            format: self
                .word(name, "format", &section.format, formats, LogFormat::as_str)
                .unwrap_or(LogFormat::Text),
        }
    }

    fn param_cache(&mut self, field: &Field<String>) -> PathBuf {
        match field {
            Some(path) if path.get_ref().is_empty() => {
                let expected = file::expected("srs", "param_cache");
                self.note("srs", "param_cache", path, ProblemKind::Empty { expected });
                PathBuf::new()
            }
            Some(path) => path.get_ref().into(),
            None => self
                .host
                .param_cache
                .clone()
                .unwrap_or_else(|| PARAM_CACHE_DEFAULT.into()),
        }
    }

    /// Kinds of proof, each once.
    fn multiples(&mut self, field: &Field<Vec<String>>) -> Vec<ProofKind> {
        let Some(value) = field else {
            return vec![ProofKind::WinningPost];
        };
        let mut kinds = Vec::new();
        for name in value.get_ref() {
            match name.parse() {
                Ok(kind) if kinds.contains(&kind) => {}
                Ok(kind) => kinds.push(kind),
                Err(_) => {
                    let expected = file::expected("srs", "multiples");
                    let got = name.clone();
                    let kind = ProblemKind::UnknownValue { expected, got };
                    self.note("srs", "multiples", value, kind);
                }
            }
        }
        kinds
    }

    /// A number of threads: 0, and no number, mean all cores.
    fn threads(&mut self, section: &str, key: &str, field: &Field<i64>) -> usize {
        let cores = self.host.cores.max(1);
        match field {
            Some(value) if *value.get_ref() == 0 => cores,
            field => self.count(section, key, field, cores),
        }
    }

    /// A number from 1 to [`COUNT_MAX`].
    fn count(&mut self, section: &str, key: &str, field: &Field<i64>, default: usize) -> usize {
        self.positive(section, key, field, COUNT_MAX)
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(default)
    }

    /// A time of 1 to [`SECONDS_MAX`] seconds.
    fn seconds(&mut self, section: &str, key: &str, field: &Field<i64>, default: u64) -> Duration {
        let seconds = self.positive(section, key, field, SECONDS_MAX);
        Duration::from_secs(seconds.unwrap_or(default))
    }

    /// A number from 1 to `max`; `None` for no value, and for a bad one.
    fn positive(&mut self, section: &str, key: &str, field: &Field<i64>, max: u64) -> Option<u64> {
        let value = field.as_ref()?;
        let expected = file::expected(section, key);
        let problem = match (*value.get_ref(), u64::try_from(*value.get_ref())) {
            (got, Err(_)) => ProblemKind::Negative { expected, got },
            (_, Ok(0)) => ProblemKind::Zero { expected },
            (_, Ok(got)) if got <= max => return Some(got),
            (_, Ok(got)) => ProblemKind::TooLarge { max, got },
        };
        self.note(section, key, value, problem);
        None
    }

    fn faults_max(&mut self, field: &Field<i64>) -> u32 {
        let faults = self.count("gpus", "faults_max", field, 3);
        u32::try_from(faults).unwrap_or(u32::MAX)
    }

    fn jobs(&mut self, section: &file::JobsSection) -> Jobs {
        let mut seconds = |key, field, default| self.seconds("jobs", key, field, default);
        let results_kept_for = seconds("results_kept_s", &section.results_kept_s, 3600);
        let patience = Patience {
            normal: seconds("normal_patience_s", &section.normal_patience_s, 3600),
            low: seconds("low_patience_s", &section.low_patience_s, 6 * 3600),
        };
        let mut count = |key, field, default| self.count("jobs", key, field, default);
        Jobs {
            queued_partitions: count("queued_partitions", &section.queued_partitions, 1024),
            results_kept: count("results_kept", &section.results_kept, 1024),
            results_kept_for,
            patience,
            journal: section
                .journal
                .as_ref()
                .map(|path| PathBuf::from(path.get_ref()))
                .filter(|path| !path.as_os_str().is_empty()),
        }
    }

    fn devices(&mut self, field: &Field<DevicesText>) -> Devices {
        let auto = if self.host.cuda {
            Devices::Auto
        } else {
            Devices::Cpu
        };
        let Some(value) = field else { return auto };
        match value.get_ref() {
            DevicesText::Keyword(word) if word == "cpu" => Devices::Cpu,
            DevicesText::Keyword(word) if word == "auto" => auto,
            DevicesText::Keyword(word) => {
                let expected = file::expected("gpus", "devices");
                let kind = ProblemKind::UnknownValue {
                    expected,
                    got: word.clone(),
                };
                self.note("gpus", "devices", value, kind);
                auto
            }
            DevicesText::Ordinals(list) => match ordinals(list, self.host.cuda) {
                Ok(ordinals) => Devices::Ordinals(ordinals),
                Err(kind) => {
                    self.note("gpus", "devices", value, kind);
                    auto
                }
            },
        }
    }

    fn memory(&mut self, section: &file::MemorySection) -> Memory {
        let host_bytes = self.host.memory_bytes.filter(|&bytes| bytes > 0);
        let budget = self.size("memory", "total_budget", &section.total_budget);
        let margin = self.size("memory", "safety_margin", &section.safety_margin);
        let budget_bytes = budget.or(host_bytes).unwrap_or(MEMORY_UNKNOWN_BYTES);
        let margin_bytes = margin.unwrap_or_else(|| margin_auto_bytes(budget_bytes));
        if margin_bytes >= budget_bytes {
            let kind = ProblemKind::MarginExceedsBudget {
                margin_bytes,
                budget_bytes,
            };
            match (&section.safety_margin, &section.total_budget) {
                (Some(at), _) => self.note("memory", "safety_margin", at, kind),
                (None, Some(at)) => self.note("memory", "total_budget", at, kind),
                (None, None) => {}
            }
        }
        let usable_bytes = budget_bytes.saturating_sub(margin_bytes);
        let reserve_bytes = self.critical_reserve(&section.critical_reserve, usable_bytes);
        Memory {
            total_budget_bytes: budget_bytes,
            safety_margin_bytes: margin_bytes,
            critical_reserve_bytes: reserve_bytes,
            dealloc: self
                .word(
                    "memory",
                    "dealloc",
                    &section.dealloc,
                    &Dealloc::ALL,
                    Dealloc::as_str,
                )
                .unwrap_or(Dealloc::Recycle),
        }
    }

    /// What is left for other jobs must be something.
    fn critical_reserve(&mut self, field: &Field<SizeText>, usable_bytes: u64) -> u64 {
        let auto_bytes = (usable_bytes / 8).min(RESERVE_AUTO_MAX_BYTES);
        let Some(at) = field else { return auto_bytes };
        if is_zero(at.get_ref()) {
            return 0;
        }
        let reserve_bytes = self
            .size("memory", "critical_reserve", field)
            .unwrap_or(auto_bytes);
        if reserve_bytes >= usable_bytes {
            let kind = ProblemKind::ReserveExceedsBudget {
                reserve_bytes,
                usable_bytes,
            };
            self.note("memory", "critical_reserve", at, kind);
        }
        reserve_bytes
    }

    /// Instructions that this machine has.
    fn isa(&mut self, field: &Field<String>) -> Isa {
        let Some(value) = field else {
            return Isa::best();
        };
        value.get_ref().parse().unwrap_or_else(|error| {
            let kind = match error {
                IsaError::Unknown(got) => ProblemKind::UnknownValue {
                    expected: file::expected("cpu", "isa"),
                    got,
                },
                IsaError::Unsupported => ProblemKind::NoIfma,
            };
            self.note("cpu", "isa", value, kind);
            Isa::best()
        })
    }

    /// A size in bytes; `None` for `"auto"`, for no value, and for a bad one.
    fn size(&mut self, section: &str, key: &str, field: &Field<SizeText>) -> Option<u64> {
        let value = field.as_ref()?;
        let expected = file::expected(section, key);
        let bytes = match value.get_ref() {
            SizeText::Text(text) if text == "auto" => return None,
            SizeText::Text(text) => size_with_unit(text).ok_or_else(|| ProblemKind::BadSize {
                expected,
                got: text.clone(),
            }),
            SizeText::Bytes(got) => u64::try_from(*got).map_err(|_| ProblemKind::Negative {
                expected,
                got: *got,
            }),
        };
        let problem = match bytes {
            Ok(0) => ProblemKind::Zero { expected },
            Ok(got) if got > SIZE_MAX_BYTES => ProblemKind::TooLarge {
                max: SIZE_MAX_BYTES,
                got,
            },
            Ok(bytes) => return Some(bytes),
            Err(kind) => kind,
        };
        self.note(section, key, value, problem);
        None
    }

    /// One of `values`.
    fn word<T: Copy>(
        &mut self,
        section: &str,
        key: &str,
        field: &Field<String>,
        values: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let value = field.as_ref()?;
        let found = values
            .iter()
            .find(|&&candidate| name(candidate) == value.get_ref());
        if found.is_none() {
            let expected = file::expected(section, key);
            let kind = ProblemKind::UnknownValue {
                expected,
                got: value.get_ref().clone(),
            };
            self.note(section, key, value, kind);
        }
        found.copied()
    }
}

/// A tenth of the budget, in whole MiB where it has any.
fn margin_auto_bytes(budget_bytes: u64) -> u64 {
    let tenth_bytes = (budget_bytes / 10).clamp(1, MARGIN_AUTO_MAX_BYTES);
    let below_mib = tenth_bytes % (1 << 20);
    if below_mib == tenth_bytes {
        tenth_bytes
    } else {
        tenth_bytes - below_mib
    }
}

fn ordinals(list: &[i64], cuda: bool) -> Result<Vec<u32>, ProblemKind> {
    if list.is_empty() {
        return Err(ProblemKind::NoDevice);
    }
    if !cuda {
        return Err(ProblemKind::NoCuda);
    }
    let mut ordinals = Vec::with_capacity(list.len());
    for &got in list {
        let ordinal = match (u32::try_from(got), u64::try_from(got)) {
            (Ok(ordinal), Ok(got)) if got <= COUNT_MAX => ordinal,
            (_, Ok(got)) => {
                return Err(ProblemKind::TooLarge {
                    max: COUNT_MAX,
                    got,
                });
            }
            (_, Err(_)) => {
                let expected = file::expected("gpus", "devices");
                return Err(ProblemKind::Negative { expected, got });
            }
        };
        if ordinals.contains(&ordinal) {
            return Err(ProblemKind::DuplicateDevice { ordinal });
        }
        ordinals.push(ordinal);
    }
    Ok(ordinals)
}

/// Whether it is no memory at all.
fn is_zero(size: &SizeText) -> bool {
    match size {
        SizeText::Bytes(bytes) => *bytes == 0,
        SizeText::Text(text) => size_with_unit(text) == Some(0),
    }
}

/// `"16GiB"` in bytes. A number without a unit is refused: as text it is as
/// likely meant in GiB as in bytes.
fn size_with_unit(text: &str) -> Option<u64> {
    let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
    let size: ByteSize = text.parse().ok().filter(|_| has_unit)?;
    Some(size.as_u64())
}

#[cfg(test)]
mod tests;
