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
}
