//! Names of machines and circuits.
//!
//! A name is no address and no credential. The invariant: a name can be a token of a subject,
//! so it needs no escaping anywhere.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The most bytes of a name.
pub const NAME_BYTES_MAX: usize = 64;

/// A name of 1 to 64 letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// The error of a text that is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("name {0:?}: expected 1 to {NAME_BYTES_MAX} letters, digits, `-` and `_`; choose another")]
pub struct BadName(String);

impl Name {
    /// Returns the text of the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed) {
            return Ok(Self(text.into()));
        }
        let start: String = text.chars().take(NAME_BYTES_MAX).collect();
        Err(BadName(start))
    }
}

impl TryFrom<String> for Name {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_token_of_a_subject() {
        let longest = "x".repeat(NAME_BYTES_MAX);
        for good in ["a", "porep-32GiB", "node_7", &longest] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        let too_long = "x".repeat(NAME_BYTES_MAX + 1);
        for bad in ["", "a.b", "a b", "*", ">", "ä", &too_long] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }
}
