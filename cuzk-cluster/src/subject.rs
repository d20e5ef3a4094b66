//! The subject of work: its schema, circuit, fingerprint and priority.
//!
//! A subject is no address of a machine. The invariant: two machines use the same subject only
//! if they understand the same messages and prove the same circuit for the same verifying key.

use std::fmt;
use std::str::FromStr;

use cuzk_scheduler::priority::Priority;
use serde::{Deserialize, Serialize};

use crate::name::Name;

/// The schema of the messages. A change of any message or of its meaning needs another number.
pub const SCHEMA: u16 = 1;

/// The first tokens of each subject of work.
pub const WORK_PREFIX: &str = "cuzk.work";

/// The bytes of a fingerprint that a subject shows, as two hexadecimal digits each.
const SHOWN_BYTES: usize = 16;

/// A digest of a compiled circuit and its verifying key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 32]);

/// A circuit by name and content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Circuit {
    /// The name of the circuit, such as `porep-32GiB`.
    pub name: Name,
    /// The digest of its content.
    pub fingerprint: Fingerprint,
}

/// The subject of a partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// The circuit that the partition instantiates.
    pub circuit: Circuit,
    /// Its urgency.
    pub priority: Priority,
}

/// The error of a text that is no subject of this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "subject {0:?}: expected {WORK_PREFIX}.{SCHEMA}.CIRCUIT.FINGERPRINT.PRIORITY; \
     check the versions of the machines"
)]
pub struct BadSubject(String);

impl Subject {
    /// Returns the name of the consumer that all workers of this subject share.
    #[must_use]
    pub fn consumer(&self) -> String {
        let Self { circuit, priority } = self;
        format!(
            "v{SCHEMA}-{}-{}-{priority}",
            circuit.name, circuit.fingerprint
        )
    }
}

/// Returns true for the priorities that must not wait behind sealing.
#[must_use]
pub fn is_urgent(priority: Priority) -> bool {
    priority <= Priority::High
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().take(SHOWN_BYTES);
        shown
            .into_iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { circuit, priority } = self;
        let Circuit { name, fingerprint } = circuit;
        write!(f, "{WORK_PREFIX}.{SCHEMA}.{name}.{fingerprint}.{priority}")
    }
}

/// The parts of a subject that its text has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectParts {
    /// The name of the circuit.
    pub circuit: Name,
    /// The first bytes of the fingerprint, in hexadecimal digits.
    pub fingerprint: String,
    /// The urgency.
    pub priority: Priority,
}

impl FromStr for SubjectParts {
    type Err = BadSubject;

    fn from_str(text: &str) -> Result<Self, BadSubject> {
        let error = || BadSubject(text.chars().take(256).collect());
        let rest = text.strip_prefix(WORK_PREFIX).ok_or_else(error)?;
        let tokens: Vec<&str> = rest.split('.').collect();
        let ["", schema, name, fingerprint, priority] = tokens[..] else {
            return Err(error());
        };
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_whole = fingerprint.len() == 2 * SHOWN_BYTES && fingerprint.bytes().all(is_hex);
        if schema != SCHEMA.to_string() || !is_whole {
            return Err(error());
        }
        Ok(Self {
            circuit: name.parse().map_err(|_| error())?,
            fingerprint: fingerprint.to_owned(),
            priority: priority.parse().map_err(|_| error())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use cuzk_fuzz::Corpus;

    use super::*;

    fn subject(priority: Priority) -> Subject {
        Subject {
            circuit: Circuit {
                name: "porep-32GiB".parse().unwrap(),
                fingerprint: Fingerprint([0xab; 32]),
            },
            priority,
        }
    }

    #[test]
    fn a_subject_reads_back() {
        for priority in Priority::ALL {
            let text = subject(priority).to_string();
            let parts: SubjectParts = text.parse().unwrap();
            assert_eq!(parts.priority, priority);
            assert_eq!(parts.circuit.as_str(), "porep-32GiB");
            assert_eq!(parts.fingerprint, "ab".repeat(16));
        }
    }

    #[test]
    fn other_versions_and_damaged_texts_are_refused() {
        let good = subject(Priority::Normal).to_string();
        let bad = [
            good.replace(&format!(".{SCHEMA}."), ".9999."),
            good.replace("cuzk", "cuzc"),
            good.replace("work", "works"),
            good.replace("normal", "now"),
            good.replace("abab", "ABAB"),
            good.replace("abab", "ab"),
            format!("{good}.more"),
            String::new(),
        ];
        for text in bad {
            assert!(text.parse::<SubjectParts>().is_err(), "{text}");
        }
    }

    /// A subject has one text, so that two machines never mean the same by two.
    #[test]
    fn mutated_subjects_are_errors_or_read_back() {
        const WORDS: [&[u8]; 6] = [b".", b"*", b">", b"critical", b"cuzk.work", b"\xe2\x80\xae"];
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/subjects");
        let corpus = Priority::ALL
            .into_iter()
            .map(|priority| subject(priority).to_string())
            .fold(Corpus::read(corpus), Corpus::with)
            .with_words(&WORDS);
        let decode = |input: &[u8]| {
            let text = String::from_utf8_lossy(input);
            text.parse().map(|parts| {
                let SubjectParts {
                    circuit,
                    fingerprint,
                    priority,
                } = parts;
                let written = format!("{WORK_PREFIX}.{SCHEMA}.{circuit}.{fingerprint}.{priority}");
                assert_eq!(written, text);
            })
        };
        // An error quotes no more of it than a line has.
        let is_expected = |BadSubject(quoted): &BadSubject| quoted.chars().count() <= 256;
        corpus.fuzz_decoder("subjects", 20_000, decode, is_expected);
    }

    #[test]
    fn a_consumer_has_a_name_of_one_token() {
        let name = subject(Priority::High).consumer();
        assert!(!name.contains(['.', '*', '>', ' ']), "{name}");
    }
}
