//! A TOML file, read into a structure whose numbers were all looked at.
//!
//! Not the meaning of any key. The invariant: after [`read`] every number is finite and
//! within 0 to 10^15, so that sums and products of a few of them are finite.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::PlanError;

/// The largest file, so that a mistaken name is told before its text is parsed.
const MAX_BYTES: usize = 1 << 20;

/// The largest number: in bytes it is a thousand times what a machine has.
const MAX: f64 = 1e15;

/// Reads `text` of the file of this name.
pub(crate) fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, PlanError> {
    let syntax = |problem: String| PlanError::Syntax {
        file: file.to_owned(),
        problem: problem.trim_end().replace('\n', " "),
    };
    if text.len() > MAX_BYTES {
        return Err(syntax(format!(
            "the file has {} bytes; a description has at most {MAX_BYTES}",
            text.len()
        )));
    }
    let table: Table = text.parse().map_err(|error| syntax(format!("{error}")))?;
    check_numbers(file, "", &Value::Table(table))?;
    toml::from_str(text).map_err(|error| syntax(error.to_string()))
}

/// Returns what a file has at a path of names; none if it is no TOML.
pub(crate) fn value_at(text: &str, path: &str) -> Option<Value> {
    let table: Table = text.parse().ok()?;
    find(&table, path).cloned()
}

fn find<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let first = names.next().and_then(|name| table.get(name));
    names.fold(first, |at, name| at?.get(name))
}

/// Returns an error unless the file has a key or a table at each of these paths.
pub(crate) fn check_paths(file: &str, text: &str, paths: &[String]) -> Result<(), PlanError> {
    let table: Table = text.parse().unwrap_or_default();
    for path in paths {
        if find(&table, path).is_none() {
            return Err(PlanError::Value {
                file: file.to_owned(),
                key: "assumed".to_owned(),
                expected: "keys and tables of this file".to_owned(),
                got: format!("{path:?}"),
            });
        }
    }
    Ok(())
}

/// Returns an error unless `value` is within the range of `key`.
pub(crate) fn check_range(
    file: &str,
    key: &str,
    value: f64,
    (least, most): (f64, f64),
) -> Result<(), PlanError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(PlanError::Value {
        file: file.to_owned(),
        key: key.to_owned(),
        expected: format!("{least} to {most}"),
        got: value.to_string(),
    })
}

fn check_numbers(file: &str, key: &str, value: &Value) -> Result<(), PlanError> {
    match value {
        Value::Float(number) => check_range(file, key, *number, (0.0, MAX)),
        Value::Integer(number) => check_range(file, key, *number as f64, (0.0, MAX)),
        Value::Array(values) => values.iter().try_for_each(|v| check_numbers(file, key, v)),
        Value::Table(table) => table.iter().try_for_each(|(name, value)| {
            let key = match key {
                "" => name.clone(),
                above => format!("{above}.{name}"),
            };
            check_numbers(file, &key, value)
        }),
        Value::String(_) | Value::Boolean(_) | Value::Datetime(_) => Ok(()),
    }
}
