//! The configuration that the engine sees: defaults filled in, keywords
//! resolved against the machine, ranges checked, units in the names.
//!
//! Nothing here reads a file or the environment. The invariant: a [`Config`]
//! that came out of [`resolve`] needs no further check, and printing it and
//! reading it again gives the same value.

use std::path::PathBuf;

use bytesize::ByteSize;
use rayon::{ThreadPool, ThreadPoolBuilder};
use toml::Spanned;

use super::file::{self, DevicesText, Field, FileConfig, SizeText};
use super::host::Host;
use super::problem::{ConfigError, Finding, ProblemKind};
use crate::Error;

/// Where the proofs libraries keep parameters unless told otherwise.
pub const PARAM_CACHE_DEFAULT: &str = "/var/tmp/filecoin-proof-parameters";

/// More threads, workers or waiting partitions than this is a typing error.
pub const COUNT_MAX: u64 = 4096;

/// Larger sizes than this (1 EiB) are typing errors; the unit was wrong.
pub const SIZE_MAX_BYTES: u64 = 1 << 60;

/// Assumed where the machine does not tell its memory: small enough to be
/// there, large enough for test sectors.
const MEMORY_UNKNOWN_BYTES: u64 = 4 << 30;

/// The automatic safety margin is a tenth of the budget, at most this.
const MARGIN_AUTO_MAX_BYTES: u64 = 16 << 30;

/// The whole configuration, resolved. Serialised, it has the keys of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Groth16 parameters.
    pub srs: Srs,
    /// Witnesses and constraint evaluation.
    pub synthesis: Synthesis,
    /// What proves.
    pub gpus: Gpus,
    /// How much memory may be used.
    pub memory: Memory,
    /// How far stages run ahead and when they yield.
    pub pipeline: Pipeline,
    /// What is written to stderr.
    pub logging: Logging,
}

/// Groth16 parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Srs {
    /// Folder of the `.params` and `.vk` files; UTF-8 where it came from a file
    /// or the environment.
    pub param_cache: PathBuf,
}

/// Witnesses and constraint evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synthesis {
    /// Threads of the synthesis pool, at least 1.
    pub threads: usize,
    /// Partitions synthesised at a time, at least 1.
    pub partition_workers: usize,
}

impl Synthesis {
    /// A pool of `threads` threads.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Threads`] when the operating system gives fewer.
    pub fn pool(&self) -> Result<ThreadPool, Error> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .thread_name(|index| format!("cuzk-pool-{index}"))
            .build();
        Ok(pool.map_err(|source| ConfigError::Threads {
            threads: self.threads,
            source,
        })?)
    }
}

/// What proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpus {
    /// The devices.
    pub devices: Devices,
    /// Threads of the pool that works beside the GPUs, at least 1.
    pub gpu_threads: usize,
    /// Workers of each device, at least 1.
    pub gpu_workers_per_device: usize,
}

/// The devices that prove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Devices {
    /// The CPU alone.
    Cpu,
    /// Every GPU that CUDA shows; the CPU where it shows none. Only in a build
    /// that drives GPUs: elsewhere it resolves to [`Devices::Cpu`].
    Auto,
    /// These GPUs, in CUDA's order; not empty, none twice.
    Ordinals(Vec<u32>),
}

/// How much memory may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// All that the engine may use, bytes, above zero.
    pub total_budget_bytes: u64,
    /// The part of it that is never reserved, bytes, above zero and below
    /// `total_budget_bytes`.
    pub safety_margin_bytes: u64,
}

/// How far stages run ahead and when they yield.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Synthesised partitions that may wait for a prover, at least 1.
    pub synthesis_lookahead: usize,
    /// Whether evaluation yields memory bandwidth while the G2 MSM runs.
    pub throttle: bool,
}

/// What is written to stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logging {
    /// Least severity written.
    pub level: LogLevel,
    /// Text or JSON.
    pub format: LogFormat,
}

/// Least severity written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// Failures.
    Error,
    /// What an operator should look at.
    Warn,
    /// Jobs and their ends.
    Info,
    /// Stages.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// Every level, from the quietest.
    pub const ALL: [Self; 6] = [
        Self::Off,
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    /// The level's name, as the file spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How a log line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Both formats.
    pub const ALL: [Self; 2] = [Self::Text, Self::Json];

    /// The format's name, as the file spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// What the file says, completed and checked against the machine. Everything
/// that is wrong goes to `findings`; where there is any, the result must not be
/// used.
pub(super) fn resolve(file: &FileConfig, host: &Host, findings: &mut Vec<Finding>) -> Config {
    let mut check = Check { host, findings };
    Config {
        srs: Srs {
            param_cache: check.param_cache(&file.srs.param_cache),
        },
        synthesis: Synthesis {
            threads: check.threads("synthesis", "threads", &file.synthesis.threads),
            partition_workers: check.count(
                "synthesis",
                "partition_workers",
                &file.synthesis.partition_workers,
                1,
            ),
        },
        gpus: Gpus {
            devices: check.devices(&file.gpus.devices),
            gpu_threads: check.threads("gpus", "gpu_threads", &file.gpus.gpu_threads),
            gpu_workers_per_device: check.count(
                "gpus",
                "gpu_workers_per_device",
                &file.gpus.gpu_workers_per_device,
                2,
            ),
        },
        memory: check.memory(&file.memory),
        pipeline: Pipeline {
            synthesis_lookahead: check.count(
                "pipeline",
                "synthesis_lookahead",
                &file.pipeline.synthesis_lookahead,
                1,
            ),
            throttle: file
                .pipeline
                .throttle
                .as_ref()
                .is_none_or(|throttle| *throttle.get_ref()),
        },
        logging: Logging {
            level: check
                .word(
                    "level",
                    &file.logging.level,
                    &LogLevel::ALL,
                    LogLevel::as_str,
                )
                .unwrap_or(LogLevel::Info),
            format: check
                .word(
                    "format",
                    &file.logging.format,
                    &LogFormat::ALL,
                    LogFormat::as_str,
                )
                .unwrap_or(LogFormat::Text),
        },
    }
}

/// The checks of single values; what fails them is noted and defaulted, so
/// that the rest is checked too.
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
        let Some(value) = field else { return default };
        let expected = file::expected(section, key);
        let problem = match (*value.get_ref(), u64::try_from(*value.get_ref())) {
            (got, Err(_)) => ProblemKind::Negative { expected, got },
            (_, Ok(0)) => ProblemKind::Zero { expected },
            (_, Ok(got)) => match usize::try_from(got) {
                Ok(count) if got <= COUNT_MAX => return count,
                _ => ProblemKind::TooLarge {
                    max: COUNT_MAX,
                    got,
                },
            },
        };
        self.note(section, key, value, problem);
        default
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
        let budget = self.size("total_budget", &section.total_budget);
        let margin = self.size("safety_margin", &section.safety_margin);
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
        Memory {
            total_budget_bytes: budget_bytes,
            safety_margin_bytes: margin_bytes,
        }
    }

    /// A size in bytes; `None` for `"auto"`, for no value, and for a bad one.
    fn size(&mut self, key: &str, field: &Field<SizeText>) -> Option<u64> {
        let value = field.as_ref()?;
        let expected = file::expected("memory", key);
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
        self.note("memory", key, value, problem);
        None
    }

    /// One of `values`, all of section `[logging]`.
    fn word<T: Copy>(
        &mut self,
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
            let expected = file::expected("logging", key);
            let kind = ProblemKind::UnknownValue {
                expected,
                got: value.get_ref().clone(),
            };
            self.note("logging", key, value, kind);
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

/// `"16GiB"` in bytes. A number without a unit is refused: as text it is as
/// likely meant in GiB as in bytes.
fn size_with_unit(text: &str) -> Option<u64> {
    let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
    let size: ByteSize = text.parse().ok().filter(|_| has_unit)?;
    Some(size.as_u64())
}

/// The shortest exact spelling of a size: `"24GiB"`, `"1023KiB"`, `"7B"`.
fn size_text(bytes: u64) -> SizeText {
    const UNITS: [(u64, &str); 4] = [
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    let unit = UNITS
        .iter()
        .find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    let (unit, name) = unit.copied().unwrap_or((1, "B"));
    SizeText::Text(format!("{}{name}", bytes / unit))
}

/// A value that stands in no file.
fn written<T>(value: T) -> Field<T> {
    Some(Spanned::new(0..0, value))
}

fn count(value: usize) -> Field<i64> {
    written(i64::try_from(value).unwrap_or(i64::MAX))
}

impl From<&Config> for FileConfig {
    /// The file that resolves to this configuration, every key written.
    fn from(config: &Config) -> Self {
        let devices = match &config.gpus.devices {
            Devices::Cpu => DevicesText::Keyword("cpu".to_owned()),
            Devices::Auto => DevicesText::Keyword("auto".to_owned()),
            Devices::Ordinals(list) => {
                DevicesText::Ordinals(list.iter().map(|&ordinal| ordinal.into()).collect())
            }
        };
        Self {
            srs: file::SrsSection {
                param_cache: written(config.srs.param_cache.to_string_lossy().into_owned()),
            },
            synthesis: file::SynthesisSection {
                threads: count(config.synthesis.threads),
                partition_workers: count(config.synthesis.partition_workers),
            },
            gpus: file::GpusSection {
                devices: written(devices),
                gpu_threads: count(config.gpus.gpu_threads),
                gpu_workers_per_device: count(config.gpus.gpu_workers_per_device),
            },
            memory: file::MemorySection {
                total_budget: written(size_text(config.memory.total_budget_bytes)),
                safety_margin: written(size_text(config.memory.safety_margin_bytes)),
            },
            pipeline: file::PipelineSection {
                synthesis_lookahead: count(config.pipeline.synthesis_lookahead),
                throttle: written(config.pipeline.throttle),
            },
            logging: file::LoggingSection {
                level: written(config.logging.level.as_str().to_owned()),
                format: written(config.logging.format.as_str().to_owned()),
            },
        }
    }
}
