//! The members of a JSON object, taken out one by one and by type.
//!
//! Not a schema: the caller asks for what it needs. The invariants: no key is there
//! twice; every error names the member, and never repeats more than a line of it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::Error;

/// The unread members of an object.
pub(super) struct Members(Map<String, Value>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Once)
    }
}

/// Reads an object each of whose keys is there once: which of two values a client
/// meant is not to be guessed.
struct Once;

impl<'de> Visitor<'de> for Once {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Members, A::Error> {
        let mut members = Map::new();
        while let Some((key, value)) = access.next_entry::<String, Value>()? {
            if members.contains_key(&key) {
                let key: String = key.chars().take(40).collect();
                return Err(A::Error::custom(format_args!("`{key}` is there twice")));
            }
            members.insert(key, value);
        }
        Ok(Members(members))
    }
}

impl Members {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).map_err(|problem| {
            Error::request(
                "request",
                format!("not valid JSON: {problem}"),
                "send a JSON object whose keys are the fields of SubmitProofRequest",
            )
        })
    }

    /// The first key that is none of `known`.
    pub(super) fn unknown(&self, known: &[&str]) -> Option<&str> {
        self.0
            .keys()
            .map(String::as_str)
            .find(|key| !known.contains(key))
    }

    /// A field's value; an explicit null is an absent field.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key).filter(|value| !value.is_null())
    }

    fn require(&mut self, key: &str) -> Result<Value, Error> {
        self.take(key).ok_or_else(|| {
            Error::request(
                key,
                "missing",
                "send every field that this kind of proof needs",
            )
        })
    }

    pub(super) fn number(&mut self, key: &str) -> Result<u64, Error> {
        let value = self.require(key)?;
        as_number(key, &value)
    }

    pub(super) fn optional_number(&mut self, key: &str) -> Result<Option<u64>, Error> {
        self.take(key)
            .map(|value| as_number(key, &value))
            .transpose()
    }

    pub(super) fn bytes(&mut self, key: &str) -> Result<Vec<u8>, Error> {
        let value = self.require(key)?;
        as_bytes(key, &value)
    }

    pub(super) fn byte_strings(&mut self, key: &str) -> Result<Vec<Vec<u8>>, Error> {
        let value = self.require(key)?;
        as_array(key, &value)?
            .iter()
            .enumerate()
            .map(|(index, item)| as_bytes(&format!("{key}[{index}]"), item))
            .collect()
    }
}

pub(super) fn as_number(field: &str, value: &Value) -> Result<u64, Error> {
    value
        .as_u64()
        .ok_or_else(|| wrong_type(field, "an unsigned 64-bit integer", value))
}

pub(super) fn as_array<'a>(field: &str, value: &'a Value) -> Result<&'a Vec<Value>, Error> {
    value
        .as_array()
        .ok_or_else(|| wrong_type(field, "an array", value))
}

pub(super) fn as_bytes(field: &str, value: &Value) -> Result<Vec<u8>, Error> {
    match value.as_str() {
        Some(text) => base64(field, text),
        None => Err(wrong_type(field, "a string of base64", value)),
    }
}

fn wrong_type(field: &str, expected: &str, value: &Value) -> Error {
    Error::request(
        field,
        format!("expected {expected}, got {}", shorten(value)),
        "correct the field's type",
    )
}

/// A value in a message, which must not be as long as the request.
pub(super) fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

pub(super) fn base64(field: &str, text: &str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(text).map_err(|problem| {
        Error::request(
            field,
            format!("not base64: {problem}"),
            "send standard base64 with padding (RFC 4648, section 4)",
        )
    })
}

pub(super) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
