//! The way from a configuration file to the configuration.
//!
//! Nothing here reads a file or the environment. The invariant: where nothing is noted,
//! the [`Config`] needs no further check.

use std::path::PathBuf;
use std::str::FromStr;

use cuzk_fetch::Source;
use cuzk_kernels::{Isa, IsaError};
use cuzk_scheduler::priority::Patience;
use supraseal_sys::device::BG2;

use super::address::without_credentials;
use super::file::{self, DevicesText, Field, FileConfig, SizeText};
use super::host::Host;
use super::keys::expected;
use super::problem::{Finding, ProblemKind};
use super::resolved::{
    Config, Cpu, Devices, Gpus, Jobs, LogFormat, LogLevel, Logging, Memory, Pipeline, Srs,
    Synthesis,
};
use super::values::{COUNT_MAX, Check, is_zero};
use cuzk_filecoin::ProofKind;
use cuzk_groth16::CircuitForm;
use cuzk_memory::{Dealloc, ThrottleManner};

/// Where the proofs libraries keep parameters unless told otherwise.
pub const PARAM_CACHE_DEFAULT: &str = "/var/tmp/filecoin-proof-parameters";

/// Assumed where the machine does not tell its memory: small enough to be
/// there, large enough for test sectors.
const MEMORY_UNKNOWN_BYTES: u64 = 4 << 30;

/// The least budget. Reading a circuit takes four times as much.
pub const TOTAL_BUDGET_MIN_BYTES: u64 = 16 << 20;

/// The automatic safety margin is a tenth of the budget, at most this.
const MARGIN_AUTO_MAX_BYTES: u64 = 16 << 30;

/// The automatic reserve is an eighth of what may be used, at most this: a WinningPoSt
/// of 32 GiB sectors fits with its files, on up to 64 threads.
const RESERVE_AUTO_MAX_BYTES: u64 = 1792 << 20;

/// Returns the configuration of a file, completed and checked against the machine.
/// Problems go to `findings`; where there is any, the result must not be used.
pub(super) fn resolve(file: &FileConfig, host: &Host, findings: &mut Vec<Finding>) -> Config {
    let mut check = Check { host, findings };
    let memory = memory(&mut check, &file.memory);
    Config {
        server: server::server(&mut check, &file.server, memory.usable_bytes()),
        cluster: cluster::cluster(&mut check, &file.cluster),
        srs: srs(&mut check, &file.srs),
        synthesis: synthesis(&mut check, &file.synthesis),
        gpus: gpus(&mut check, &file.gpus),
        cpu: Cpu {
            isa: isa(&mut check, &file.cpu.isa),
        },
        memory,
        pipeline: pipeline(&mut check, &file.pipeline),
        jobs: jobs(&mut check, &file.jobs),
        logging: logging(&mut check, &file.logging),
    }
}

fn srs(check: &mut Check<'_>, section: &file::SrsSection) -> Srs {
    Srs {
        param_cache: param_cache(check, &section.param_cache),
        multiples: multiples(check, &section.multiples),
        check_digests: section
            .check_digests
            .as_ref()
            .is_none_or(|field| *field.get_ref()),
        sources: sources(check, &section.sources),
    }
}

fn synthesis(check: &mut Check<'_>, section: &file::SynthesisSection) -> Synthesis {
    let name = "synthesis";
    Synthesis {
        threads: check.threads(name, "threads", &section.threads),
        partition_workers: check.count(name, "partition_workers", &section.partition_workers, 1),
        circuit: check
            .word(
                name,
                "circuit",
                &section.circuit,
                &CircuitForm::ALL,
                CircuitForm::as_str,
            )
            .unwrap_or_default(),
    }
}

fn gpus(check: &mut Check<'_>, section: &file::GpusSection) -> Gpus {
    let name = "gpus";
    let workers = &section.gpu_workers_per_device;
    Gpus {
        devices: devices(check, &section.devices),
        gpu_threads: check.threads(name, "gpu_threads", &section.gpu_threads),
        gpu_workers_per_device: check.count(name, "gpu_workers_per_device", workers, 2),
        faults_max: faults_max(check, &section.faults_max),
        stall: check.seconds(name, "stall_s", &section.stall_s, 600),
        rest: check.seconds(name, "rest_s", &section.rest_s, 300),
        b_g2: check
            .word(name, "b_g2", &section.b_g2, &BG2::ALL, BG2::as_str)
            .unwrap_or_default(),
        memory_limit_bytes: check.size(name, "memory_limit", &section.memory_limit),
    }
}

fn pipeline(check: &mut Check<'_>, section: &file::PipelineSection) -> Pipeline {
    let name = "pipeline";
    let lookahead = &section.synthesis_lookahead;
    let throttle = section.throttle.as_ref();
    Pipeline {
        synthesis_lookahead: check.count(name, "synthesis_lookahead", lookahead, 1),
        finish_workers: check.count(name, "finish_workers", &section.finish_workers, 1),
        max_batch: check.count(name, "max_batch", &section.max_batch, 10),
        throttle: throttle.is_some_and(|throttle| *throttle.get_ref()),
        throttle_manner: check
            .word(
                name,
                "throttle_manner",
                &section.throttle_manner,
                &ThrottleManner::ALL,
                ThrottleManner::as_str,
            )
            .unwrap_or_default(),
    }
}

fn logging(check: &mut Check<'_>, section: &file::LoggingSection) -> Logging {
    let name = "logging";
    let (levels, formats) = (&LogLevel::ALL, &LogFormat::ALL);
    Logging {
        level: check
            .word(name, "level", &section.level, levels, LogLevel::as_str)
            .unwrap_or(LogLevel::Info),
        format: check
            .word(name, "format", &section.format, formats, LogFormat::as_str)
            .unwrap_or(LogFormat::Text),
    }
}

fn param_cache(check: &mut Check<'_>, field: &Field<String>) -> PathBuf {
    check.check_path("srs", "param_cache", field);
    match field {
        Some(path) if path.get_ref().is_empty() => {
            let expected = expected("srs", "param_cache");
            check.note("srs", "param_cache", path, ProblemKind::Empty { expected });
            PathBuf::new()
        }
        Some(path) => path.get_ref().into(),
        None => check
            .host
            .param_cache
            .clone()
            .unwrap_or_else(|| PARAM_CACHE_DEFAULT.into()),
    }
}

/// Kinds of proof, each once.
fn multiples(check: &mut Check<'_>, field: &Field<Vec<String>>) -> Vec<ProofKind> {
    let kinds = each_once(check, ("srs", "multiples"), field);
    kinds.unwrap_or_else(|| vec![ProofKind::WinningPost])
}

/// Sources of parameters, each once.
fn sources(check: &mut Check<'_>, field: &Field<Vec<String>>) -> Vec<Source> {
    each_once(check, ("srs", "sources"), field).unwrap_or_default()
}

/// Reads a list, and leaves out repetitions. Returns `None` if the key is not there.
fn each_once<T: FromStr + PartialEq>(
    check: &mut Check<'_>,
    (section, key): (&'static str, &'static str),
    field: &Field<Vec<String>>,
) -> Option<Vec<T>> {
    let texts = field.as_ref()?;
    let mut values = Vec::new();
    for text in texts.get_ref() {
        if text.starts_with('~') {
            let got = text.clone();
            check.note(section, key, texts, ProblemKind::Tilde { got });
            continue;
        }
        match text.parse() {
            Ok(value) if values.contains(&value) => {}
            Ok(value) => values.push(value),
            Err(_) => {
                let expected = expected(section, key);
                let got = without_credentials(text);
                let kind = ProblemKind::UnknownValue { expected, got };
                check.note(section, key, texts, kind);
            }
        }
    }
    Some(values)
}

fn faults_max(check: &mut Check<'_>, field: &Field<i64>) -> u32 {
    let faults = check.count("gpus", "faults_max", field, 3);
    u32::try_from(faults).unwrap_or(u32::MAX)
}

fn jobs(check: &mut Check<'_>, section: &file::JobsSection) -> Jobs {
    let mut seconds = |key, field, default| check.seconds("jobs", key, field, default);
    let results_kept_for = seconds("results_kept_s", &section.results_kept_s, 3600);
    let patience = Patience {
        normal: seconds("normal_patience_s", &section.normal_patience_s, 3600),
        low: seconds("low_patience_s", &section.low_patience_s, 6 * 3600),
    };
    check.check_path("jobs", "journal", &section.journal);
    let mut count = |key, field, default| check.count("jobs", key, field, default);
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

fn devices(check: &mut Check<'_>, field: &Field<DevicesText>) -> Devices {
    let auto = if check.host.cuda {
        Devices::Auto
    } else {
        Devices::Cpu
    };
    let Some(value) = field else { return auto };
    match value.get_ref() {
        DevicesText::Keyword(word) if word == "cpu" => Devices::Cpu,
        DevicesText::Keyword(word) if word == "auto" => auto,
        DevicesText::Keyword(word) => {
            let expected = expected("gpus", "devices");
            let kind = ProblemKind::UnknownValue {
                expected,
                got: word.clone(),
            };
            check.note("gpus", "devices", value, kind);
            auto
        }
        DevicesText::Ordinals(list) => match ordinals(list, check.host.cuda) {
            Ok(ordinals) => Devices::Ordinals(ordinals),
            Err(kind) => {
                check.note("gpus", "devices", value, kind);
                auto
            }
        },
    }
}

fn memory(check: &mut Check<'_>, section: &file::MemorySection) -> Memory {
    let host_bytes = check.host.memory_bytes.filter(|&bytes| bytes > 0);
    let budget = total_budget(check, &section.total_budget);
    let margin = check.size("memory", "safety_margin", &section.safety_margin);
    let budget_bytes = budget.or(host_bytes).unwrap_or(MEMORY_UNKNOWN_BYTES);
    let margin_bytes = margin.unwrap_or_else(|| margin_auto_bytes(budget_bytes));
    if margin_bytes >= budget_bytes {
        let kind = ProblemKind::MarginExceedsBudget {
            margin_bytes,
            budget_bytes,
        };
        match (&section.safety_margin, &section.total_budget) {
            (Some(at), _) => check.note("memory", "safety_margin", at, kind),
            (None, Some(at)) => check.note("memory", "total_budget", at, kind),
            (None, None) => {}
        }
    }
    let usable_bytes = budget_bytes.saturating_sub(margin_bytes);
    let reserve_bytes = critical_reserve(check, &section.critical_reserve, usable_bytes);
    Memory {
        total_budget_bytes: budget_bytes,
        safety_margin_bytes: margin_bytes,
        critical_reserve_bytes: reserve_bytes,
        dealloc: check
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

/// A budget with which nothing could be proved is a typing error: the unit was wrong.
fn total_budget(check: &mut Check<'_>, field: &Field<SizeText>) -> Option<u64> {
    let got = check.size("memory", "total_budget", field)?;
    let min = TOTAL_BUDGET_MIN_BYTES;
    if let Some(at) = field.as_ref().filter(|_| got < min) {
        let kind = ProblemKind::TooSmall { min, got };
        check.note("memory", "total_budget", at, kind);
        return None;
    }
    Some(got)
}

/// Returns the part of the memory that only critical jobs may use. It leaves something for other
/// jobs.
fn critical_reserve(check: &mut Check<'_>, field: &Field<SizeText>, usable_bytes: u64) -> u64 {
    let auto_bytes = (usable_bytes / 8).min(RESERVE_AUTO_MAX_BYTES);
    let Some(at) = field else { return auto_bytes };
    if is_zero(at.get_ref()) {
        return 0;
    }
    let reserve_bytes = check
        .size("memory", "critical_reserve", field)
        .unwrap_or(auto_bytes);
    if reserve_bytes >= usable_bytes {
        let kind = ProblemKind::ReserveExceedsBudget {
            reserve_bytes,
            usable_bytes,
        };
        check.note("memory", "critical_reserve", at, kind);
    }
    reserve_bytes
}

/// Instructions that this machine has.
fn isa(check: &mut Check<'_>, field: &Field<String>) -> Isa {
    let Some(value) = field else {
        return Isa::best();
    };
    value.get_ref().parse().unwrap_or_else(|error| {
        let kind = match error {
            IsaError::Unknown(got) => ProblemKind::UnknownValue {
                expected: expected("cpu", "isa"),
                got,
            },
            IsaError::Unsupported(missing) => ProblemKind::NoInstructions { missing },
        };
        check.note("cpu", "isa", value, kind);
        Isa::best()
    })
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
                let expected = expected("gpus", "devices");
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

mod cluster;
mod server;
#[cfg(test)]
mod tests;
