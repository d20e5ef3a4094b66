//! The configuration as the operator wrote it.
//!
//! Not yet a configuration: nothing here has a default, a unit or a range, and
//! every value remembers where in the file it stood. The invariant: a key that
//! [`SECTIONS`] does not list never gets past [`parse`].

use std::ops::Range;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Finding, ProblemKind, nearest};

/// A value with its place in the file; `None` where the key is absent.
pub type Field<T> = Option<Spanned<T>>;

/// A size: a number of bytes, or text such as `"16GiB"` or `"auto"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SizeText {
    /// A number of bytes.
    Bytes(i64),
    /// Text with a unit, or a keyword.
    Text(String),
}

/// Devices: a keyword, or a list of ordinals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DevicesText {
    /// `"cpu"` or `"auto"`.
    Keyword(String),
    /// Ordinals in CUDA's order.
    Ordinals(Vec<i64>),
}

/// `[srs]`: where the Groth16 parameters are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SrsSection {
    /// Folder of the `.params` and `.vk` files.
    pub param_cache: Field<String>,
    /// Kinds whose points' multiples the engine makes.
    pub multiples: Field<Vec<String>>,
}

/// `[synthesis]`: witnesses and constraint evaluation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SynthesisSection {
    /// Threads; 0 for all cores.
    pub threads: Field<i64>,
    /// Partitions synthesised at a time.
    pub partition_workers: Field<i64>,
}

/// `[gpus]`: what proves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GpusSection {
    /// Devices.
    pub devices: Field<DevicesText>,
    /// Threads of the pool beside the GPUs; 0 for all cores.
    pub gpu_threads: Field<i64>,
    /// Workers of each device.
    pub gpu_workers_per_device: Field<i64>,
    /// Faults in a row after which a device gets no more work.
    pub faults_max: Field<i64>,
    /// Seconds after which a device counts as stalled.
    pub stall_s: Field<i64>,
    /// Seconds that a device which failed too often rests at first.
    pub rest_s: Field<i64>,
    /// Where the sum in G2 runs.
    pub b_g2: Field<String>,
    /// Memory of each device.
    pub memory_limit: Field<SizeText>,
}

/// `[cpu]`: how the CPU computes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CpuSection {
    /// Instructions.
    pub isa: Field<String>,
}

/// `[memory]`: how much may be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySection {
    /// All that the engine may use.
    pub total_budget: Field<SizeText>,
    /// The part of it that is never reserved.
    pub safety_margin: Field<SizeText>,
    /// The part of it that only critical jobs may use.
    pub critical_reserve: Field<SizeText>,
    /// What becomes of vectors that are done with.
    pub dealloc: Field<String>,
}

/// `[pipeline]`: how far stages run ahead and when they yield.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PipelineSection {
    /// Synthesised partitions that may wait for a prover.
    pub synthesis_lookahead: Field<i64>,
    /// Partitions finished at a time.
    pub finish_workers: Field<i64>,
    /// Whether synthesis yields memory bandwidth.
    pub throttle: Field<bool>,
}

/// `[jobs]`: what is accepted, in which order, and what is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobsSection {
    /// Partitions that may wait.
    pub queued_partitions: Field<i64>,
    /// Results kept for callers who ask again.
    pub results_kept: Field<i64>,
    /// Seconds that they are kept.
    pub results_kept_s: Field<i64>,
    /// Seconds that normal jobs wait for more urgent ones.
    pub normal_patience_s: Field<i64>,
    /// Seconds that low jobs do.
    pub low_patience_s: Field<i64>,
    /// The journal's file, or nothing for none.
    pub journal: Field<String>,
}

/// `[logging]`: what is written to stderr.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoggingSection {
    /// Least severity written.
    pub level: Field<String>,
    /// Text or JSON.
    pub format: Field<String>,
}

/// A whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileConfig {
    /// `[srs]`
    pub srs: SrsSection,
    /// `[synthesis]`
    pub synthesis: SynthesisSection,
    /// `[gpus]`
    pub gpus: GpusSection,
    /// `[cpu]`
    pub cpu: CpuSection,
    /// `[memory]`
    pub memory: MemorySection,
    /// `[pipeline]`
    pub pipeline: PipelineSection,
    /// `[jobs]`
    pub jobs: JobsSection,
    /// `[logging]`
    pub logging: LoggingSection,
}

/// A key and what its value is, in the operator's words.
type Key = (&'static str, &'static str);

/// Every section with its keys.
pub const SECTIONS: &[(&str, &[Key])] = &[
    (
        "srs",
        &[
            ("param_cache", "a path in quotes"),
            (
                "multiples",
                "a list of kinds of \"porep\", \"winning-post\", \"window-post\", \"snap-deals\"",
            ),
        ],
    ),
    (
        "synthesis",
        &[
            ("threads", "a whole number (0 for all cores)"),
            ("partition_workers", "a whole number, at least 1"),
        ],
    ),
    (
        "gpus",
        &[
            (
                "devices",
                "\"cpu\", \"auto\" or a list of device ordinals such as [0, 1]",
            ),
            ("gpu_threads", "a whole number (0 for all cores)"),
            ("gpu_workers_per_device", "a whole number, at least 1"),
            ("faults_max", "a whole number, at least 1"),
            ("stall_s", "a whole number of seconds, at least 1"),
            ("rest_s", "a whole number of seconds, at least 1"),
            ("b_g2", "one of \"cpu\", \"device\", \"auto\""),
            (
                "memory_limit",
                "a size such as \"16GiB\", a number of bytes, or \"auto\"",
            ),
        ],
    ),
    (
        "cpu",
        &[("isa", "one of \"auto\", \"ifma\", \"scalar\", \"portable\"")],
    ),
    (
        "memory",
        &[
            (
                "total_budget",
                "a size such as \"16GiB\", a number of bytes, or \"auto\"",
            ),
            (
                "safety_margin",
                "a size such as \"2GiB\", a number of bytes, or \"auto\"",
            ),
            (
                "critical_reserve",
                "a size such as \"512MiB\" (\"0B\" for none), a number of bytes, or \"auto\"",
            ),
            ("dealloc", "one of \"recycle\", \"serial\", \"unbounded\""),
        ],
    ),
    (
        "pipeline",
        &[
            ("synthesis_lookahead", "a whole number, at least 1"),
            ("finish_workers", "a whole number, at least 1"),
            ("throttle", "true or false"),
        ],
    ),
    (
        "jobs",
        &[
            ("queued_partitions", "a whole number, at least 1"),
            ("results_kept", "a whole number, at least 1"),
            ("results_kept_s", "a whole number of seconds, at least 1"),
            ("normal_patience_s", "a whole number of seconds, at least 1"),
            ("low_patience_s", "a whole number of seconds, at least 1"),
            ("journal", "a path in quotes, or \"\" for no journal"),
        ],
    ),
    (
        "logging",
        &[
            (
                "level",
                "one of \"off\", \"error\", \"warn\", \"info\", \"debug\", \"trace\"",
            ),
            ("format", "\"text\" or \"json\""),
        ],
    ),
];

/// What the value of `section.key` is, in words.
pub(super) fn expected(section: &str, key: &str) -> &'static str {
    keys_of(section)
        .iter()
        .find(|(name, _)| *name == key)
        .map_or("a known key", |(_, what)| what)
}

/// Reads a file's text. Everything that is wrong with it goes to `findings`;
/// what is returned is the rest.
pub(super) fn parse(text: &str, findings: &mut Vec<Finding>) -> FileConfig {
    let (root, syntax_errors) = DeTable::parse_recoverable(text);
    if !syntax_errors.is_empty() {
        findings.extend(syntax_errors.iter().map(|error| Finding {
            at: error.span().map_or(0, |span| span.start),
            section: String::new(),
            key: String::new(),
            kind: ProblemKind::Syntax(error.message().to_owned()),
        }));
        return FileConfig::default();
    }
    let known = known_part(root.into_inner(), findings);
    read_typed(known, findings)
}

/// What is left of a file without the sections and keys that do not exist,
/// which are reported.
fn known_part<'t>(root: DeTable<'t>, findings: &mut Vec<Finding>) -> DeTable<'t> {
    let mut known = DeTable::new();
    for (section, value) in root {
        let at = section.span().start;
        let name = section.get_ref().to_string();
        let keys = keys_of(&name);
        let place = value.span();
        let kind = match value.into_inner() {
            value if keys.is_empty() => unknown_at_root(&name, &value),
            DeValue::Table(table) => {
                let table = known_keys(&name, table, findings);
                known.insert(section, Spanned::new(place, DeValue::Table(table)));
                continue;
            }
            value => ProblemKind::WrongType {
                expected: "a section, written in brackets on a line of its own",
                got: value.type_str(),
            },
        };
        findings.push(Finding {
            at,
            section: String::new(),
            key: name,
            kind,
        });
    }
    known
}

/// What is left of a section without the keys that it does not have.
fn known_keys<'t>(section: &str, table: DeTable<'t>, findings: &mut Vec<Finding>) -> DeTable<'t> {
    let keys = keys_of(section);
    let (known, unknown): (Vec<_>, Vec<_>) = table
        .into_iter()
        .partition(|(key, _)| keys.iter().any(|(known, _)| known == key.get_ref()));
    findings.extend(unknown.into_iter().map(|(key, _)| Finding {
        at: key.span().start,
        section: section.to_owned(),
        kind: unknown_key(section, key.get_ref()),
        key: key.into_inner().into_owned(),
    }));
    known.into_iter().collect()
}

/// Turns the known keys into their types. The deserialiser stops at the first
/// value of a wrong type, so that value is reported, taken out, and the rest
/// read again: each turn removes a key, so the loop ends.
fn read_typed(mut root: DeTable<'_>, findings: &mut Vec<Finding>) -> FileConfig {
    loop {
        let document = Spanned::new(0..0, root.clone());
        let error = match FileConfig::deserialize(toml::Deserializer::from(document)) {
            Ok(file) => return file,
            Err(error) => error,
        };
        let span = error.span().unwrap_or(0..0);
        let Some(finding) = remove_value_at(&mut root, &span) else {
            findings.push(Finding {
                at: span.start,
                section: String::new(),
                key: String::new(),
                kind: ProblemKind::Syntax(error.message().to_owned()),
            });
            return FileConfig::default();
        };
        findings.push(finding);
    }
}

/// Takes out the value that covers `span`.
fn remove_value_at(root: &mut DeTable<'_>, span: &Range<usize>) -> Option<Finding> {
    for (section, table) in root.iter_mut() {
        let DeValue::Table(table) = table.get_mut() else {
            continue;
        };
        let hit = table.iter().find(|(_, value)| {
            let value = value.span();
            value.start <= span.start && span.end <= value.end
        });
        let Some((key, value)) = hit else { continue };
        let expected = expected(section.get_ref(), key.get_ref());
        let finding = Finding {
            at: value.span().start,
            section: section.get_ref().to_string(),
            key: key.get_ref().to_string(),
            kind: ProblemKind::WrongType {
                expected,
                got: type_of(value.get_ref(), expected),
            },
        };
        let key = key.clone();
        table.remove(&key);
        return Some(finding);
    }
    None
}

/// What a value is that its key does not take: more than its type, where the type by
/// itself would be right.
fn type_of(value: &DeValue<'_>, expected: &str) -> &'static str {
    match value {
        DeValue::Integer(number)
            if i64::from_str_radix(number.as_str(), number.radix()).is_err() =>
        {
            "integer of more than 64 bits"
        }
        DeValue::Array(_) if expected.contains("a list") => "array of something else",
        value => value.type_str(),
    }
}

fn keys_of(section: &str) -> &'static [Key] {
    SECTIONS
        .iter()
        .find(|(name, _)| *name == section)
        .map_or(&[], |(_, keys)| keys)
}

/// A name at the top of the file that is no section: a misspelt section, or a
/// key that lost its section.
fn unknown_at_root(name: &str, value: &DeValue<'_>) -> ProblemKind {
    let sections = SECTIONS.iter().map(|(section, _)| *section);
    if value.is_table() || value.is_array() {
        return match nearest(name, sections) {
            Some(section) => ProblemKind::UnknownSection {
                advice: format!("did you mean [{section}]?"),
            },
            None => ProblemKind::UnknownSection {
                advice: format!("the sections are {}", list(SECTIONS)),
            },
        };
    }
    unknown_key("", name)
}

/// A key that its section does not have: misspelt, or of another section.
fn unknown_key(section: &str, key: &str) -> ProblemKind {
    let own = keys_of(section);
    let other = SECTIONS
        .iter()
        .find(|(_, keys)| keys.iter().any(|(name, _)| *name == key));
    let everywhere = SECTIONS
        .iter()
        .flat_map(|(_, keys)| keys.iter().map(|(name, _)| *name));
    let advice = if let Some((home, _)) = other {
        format!("it belongs in [{home}]")
    } else if let Some(name) = nearest(key, own.iter().map(|(name, _)| *name)) {
        format!("did you mean `{name}`?")
    } else if let Some(name) = nearest(key, everywhere) {
        let home = SECTIONS
            .iter()
            .find(|(_, keys)| keys.iter().any(|(own, _)| *own == name));
        format!(
            "did you mean `{name}` in [{}]?",
            home.map_or("", |(home, _)| home)
        )
    } else if own.is_empty() {
        format!(
            "every key belongs in one of the sections {}",
            list(SECTIONS)
        )
    } else {
        let names: Vec<_> = own.iter().map(|(name, _)| format!("`{name}`")).collect();
        format!("[{section}] has {}", names.join(", "))
    };
    ProblemKind::UnknownKey { advice }
}

fn list(sections: &[(&str, &[Key])]) -> String {
    let names: Vec<_> = sections
        .iter()
        .map(|(name, _)| format!("[{name}]"))
        .collect();
    names.join(", ")
}
