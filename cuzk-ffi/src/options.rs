//! The options of a job, as JSON.
//!
//! Not the request, which the engine reads. The invariant: an unknown key is an error.

use std::time::Duration;

use cuzk_core::{JobOptions, Priority};
use serde::Deserialize;

use crate::error::Failure;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    id: Option<String>,
    priority: Option<String>,
    deadline_ms: Option<u64>,
    waits: bool,
}

/// Reads options. No bytes are the default ones.
///
/// # Errors
/// Everything that is wrong with the text, with the key.
pub(crate) fn read(json: &[u8]) -> Result<JobOptions, Failure> {
    if json.is_empty() {
        return Ok(JobOptions::default());
    }
    // A list of the values would be taken, too.
    if !json.trim_ascii_start().starts_with(b"{") {
        let problem = "options: no JSON object; write one such as {\"priority\": \"low\"}";
        return Err(Failure::argument(problem));
    }
    let options: Options = serde_json::from_slice(json)
        .map_err(|error| Failure::argument(&format!("options: {error}")))?;
    let priority = options.priority.map(|name| name.parse::<Priority>());
    Ok(JobOptions {
        id: options.id,
        priority: priority
            .transpose()
            .map_err(|error| Failure::argument(&format!("options: priority: {error}")))?,
        deadline: options.deadline_ms.map(Duration::from_millis),
        waits: options.waits,
    })
}

#[cfg(test)]
mod tests {
    use cuzk_testing::fuzz::Corpus;
    use serde_json::Value;

    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_are_named() {
        let json = br#"{"id": "a", "priority": "low", "deadline_ms": 7, "waits": true}"#;
        let expected = JobOptions {
            id: Some("a".to_owned()),
            priority: Some(Priority::Low),
            deadline: Some(Duration::from_millis(7)),
            waits: true,
        };
        assert_eq!(read(json).ok(), Some(expected));
        assert_eq!(read(b"").ok(), Some(JobOptions::default()));
        assert_eq!(read(b"{}").ok(), Some(JobOptions::default()));
        for (json, part) in [
            (&br#"{"idd": "a"}"#[..], "idd"),
            (br#"{"priority": "highest"}"#, "highest"),
            (br#"{"deadline_ms": -1}"#, "-1"),
            (b"[]x", "options: "),
            (b"\xff", "options: "),
        ] {
            let told = format!("{:?}", read(json).err());
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn mutated_options_are_read_or_errors_of_the_argument() {
        const WORDS: [&[u8]; 7] = [
            b"null",
            b"-1",
            b"18446744073709551616",
            b"1e99",
            b"[[[[[[[[",
            b"\\ud800",
            b"\"waits\":",
        ];
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/options");
        let corpus = Corpus::read(corpus)
            .with(*br#"{"id": "a", "priority": "low", "deadline_ms": 7, "waits": true}"#)
            .with(*br#"{"deadline_ms": 18446744073709551615}"#)
            .with(*br#"["a", "low", 7, true]"#)
            .with_words(&WORDS);
        let decode = |input: &[u8]| {
            read(input).map(|options| {
                let json = serde_json::from_slice(input).unwrap_or_default();
                let expected = match json {
                    Value::Object(json) => json,
                    _ => return assert!(input.is_empty(), "no object"),
                };
                let id = expected.get("id").and_then(Value::as_str);
                assert_eq!(options.id.as_deref(), id);
                let deadline = expected.get("deadline_ms").and_then(Value::as_u64);
                assert_eq!(options.deadline, deadline.map(Duration::from_millis));
                let priority = expected.get("priority").and_then(Value::as_str);
                assert_eq!(options.priority.map(Priority::name), priority);
                let waits = expected.get("waits").and_then(Value::as_bool);
                assert_eq!(options.waits, waits.unwrap_or_default());
            })
        };
        let decode = |input: &[u8]| decode(input).map_err(|failure| format!("{failure:?}"));
        let is_expected =
            |text: &String| text.contains("code: Argument") && text.contains("\"options: ");
        corpus.fuzz_decoder("options", 20_000, decode, is_expected);
    }
}
