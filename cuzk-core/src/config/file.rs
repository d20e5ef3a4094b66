//! The configuration as the operator wrote it.
//!
//! Not yet a configuration: nothing here has a default, a unit or a range, and every
//! value remembers its place in the file. The invariant: a key that
//! [`SECTIONS`](super::keys::SECTIONS) does not list never gets past [`parse`].

use std::ops::Range;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{expected, keys_of, unknown_at_root, unknown_key};
use super::problem::{Finding, ProblemKind};

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
    /// Comparison of the network's parameters with their digests.
    pub check_digests: Field<bool>,
    /// Sources of parameters.
    pub sources: Field<Vec<String>>,
}

/// `[synthesis]`: witnesses and constraint evaluation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SynthesisSection {
    /// Threads; 0 for all cores.
    pub threads: Field<i64>,
    /// Partitions synthesised at a time.
    pub partition_workers: Field<i64>,
    /// Form of the rows that are evaluated.
    pub circuit: Field<String>,
}

/// `[gpus]`: the devices that prove.
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
    /// Where the MSM in G2 runs.
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
    /// How memory is freed: kept for the next partition, or given back.
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
    /// Partitions whose bits are added up together.
    pub max_batch: Field<i64>,
    /// True if synthesis yields memory bandwidth.
    pub throttle: Field<bool>,
    /// How it does.
    pub throttle_manner: Field<String>,
}

/// `[jobs]`: the queue and its order, and the results that are kept.
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

/// `[server]`: the daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSection {
    /// Addresses of the gRPC service.
    pub listen: Field<Vec<String>>,
    /// Address of the HTTP pages, or nothing for none.
    pub http: Field<String>,
    /// Permissions of unix sockets, octal.
    pub socket_mode: Field<String>,
    /// Group of unix sockets, or nothing for the process's.
    pub socket_group: Field<String>,
    /// Certificate of the server, or nothing for none.
    pub tls_certificate: Field<String>,
    /// Key of the certificate, or nothing for none.
    pub tls_key: Field<String>,
    /// Authority of the clients' certificates, or nothing for none.
    pub client_ca: Field<String>,
    /// File of tokens, or nothing for none.
    pub tokens: Field<String>,
    /// Networks whose clients need no TLS.
    pub plaintext_from: Field<Vec<String>>,
    /// Memory of requests.
    pub request_memory: Field<SizeText>,
    /// Seconds that work goes on after a request to stop.
    pub drain_s: Field<i64>,
    /// Folder of what the daemon keeps, or nothing for the environment's.
    pub state_dir: Field<String>,
    /// True if parameters are served over HTTP.
    pub serve_params: Field<bool>,
}

/// `[cluster]`: the machines that prove together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterSection {
    /// Addresses of the NATS servers, or nothing for no cluster.
    pub servers: Field<Vec<String>>,
    /// Name of this machine, or nothing for its host's.
    pub name: Field<String>,
    /// True if the daemon proves itself, too.
    pub local: Field<bool>,
    /// File of credentials, or nothing for none.
    pub credentials: Field<String>,
    /// Authority of the servers' certificates, or nothing for the system's.
    pub server_ca: Field<String>,
    /// Certificate of this machine, or nothing for none.
    pub client_certificate: Field<String>,
    /// Key of the certificate, or nothing for none.
    pub client_key: Field<String>,
    /// Bytes of partitions that a server keeps.
    pub work_bytes_max: Field<SizeText>,
    /// Bytes of long inputs that a server keeps.
    pub object_bytes_max: Field<SizeText>,
    /// Seconds for which a server keeps anything.
    pub age_max_s: Field<i64>,
    /// Servers that keep a copy.
    pub replicas: Field<i64>,
}

/// `[logging]`: the log on stderr.
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
    /// `[server]`
    pub server: ServerSection,
    /// `[cluster]`
    pub cluster: ClusterSection,
    /// `[logging]`
    pub logging: LoggingSection,
}

/// Reads a file's text. Problems go to `findings`; the rest of the text is returned.
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

/// Returns a file without the sections and keys that do not exist, which are reported.
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

/// Returns a section without the keys that do not exist, which are reported.
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

/// Returns the words for a value that its key does not take. They say more than its type
/// where the type alone would be right.
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
