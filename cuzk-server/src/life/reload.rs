//! Reading the configuration again while the daemon runs: all of it or nothing.
//!
//! Not the parts that change, which are the server's. The invariants: an error anywhere
//! leaves every key as it was. A key that needs a restart keeps its value in the running
//! configuration, so that each later reload names it again.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use cuzk_core::config::{Config, ConfigError, Host};
use cuzk_core::error::ErrorCode;
use metrics::{Unit, describe_gauge, gauge};
use toml::{Table, Value};

use super::notify;

/// 1 if the last reload succeeded, otherwise 0. The start counts as a reload.
pub const LAST_SUCCESSFUL: &str = "cuzk_config_last_reload_successful";

/// The time of the last reload that succeeded, in seconds since 1970.
pub const LAST_SUCCESS_SECONDS: &str = "cuzk_config_last_reload_success_timestamp_seconds";

/// The keys that can change while the daemon runs. The engine reads its own keys once, when
/// it starts: threads, memory and devices are divided by them.
pub const LIVE_KEYS: &[&str] = &[
    "logging.level",
    "server.client_ca",
    "server.drain_s",
    "server.plaintext_from",
    "server.tls_certificate",
    "server.tls_key",
    "server.tokens",
];

/// Describes the metrics to the installed recorder.
pub fn describe() {
    describe_gauge!(
        LAST_SUCCESSFUL,
        Unit::Count,
        "1 if the last reload of the configuration succeeded"
    );
    describe_gauge!(
        LAST_SUCCESS_SECONDS,
        Unit::Seconds,
        "Time of the last successful reload of the configuration"
    );
}

/// A daemon whose configuration can change.
pub trait Reloadable {
    /// The new state of all parts, complete and checked.
    type Prepared;

    /// Makes the new state, and changes nothing yet. Files that the configuration names are
    /// read again, even if their names are the old ones. Of `config` only the keys of
    /// [`LIVE_KEYS`] differ from what runs.
    ///
    /// # Errors
    /// A sentence that names the key and says what to do.
    fn prepare(&self, config: &Config) -> Result<Self::Prepared, String>;

    /// Puts the new state in the place of the old one. It cannot fail.
    fn apply(&self, prepared: Self::Prepared);
}

/// The effect of a reload. Keys are written `section.key`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Keys whose new values are in effect.
    pub changed: Vec<String>,
    /// Keys whose new values need a restart.
    pub need_restart: Vec<String>,
}

/// A reload that changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A part of the daemon cannot take the new values.
    #[error("{0}")]
    Refused(String),
}

/// Returns the configuration as it should be now.
type Load = Box<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>;

/// The running configuration, and the place that the next one comes from.
pub struct Reloader {
    load: Load,
    /// One reload at a time: a signal and a call may come together.
    running: Mutex<Table>,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let running = self.running.lock();
        let running = running.unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Reloader")
            .field("running", &*running)
            .finish_non_exhaustive()
    }
}

impl Reloader {
    /// Returns a reloader of a daemon that runs with `running`. Without a file, a reload
    /// reads only the files again that the configuration names.
    #[must_use]
    pub fn of_file(running: &Config, path: Option<PathBuf>) -> Self {
        Self::new(running, move || match &path {
            Some(path) => Config::load(path),
            None => Ok(Config::default()),
        })
    }

    /// Returns a reloader whose configuration comes from `load`: for a daemon whose command
    /// line takes precedence over its file.
    #[must_use]
    pub fn new(
        running: &Config,
        load: impl Fn() -> Result<Config, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        note_in_metrics(true);
        Self {
            load: Box::new(load),
            running: Mutex::new(table(running)),
        }
    }

    /// Reads the configuration again and gives it to `daemon`, and says in the metrics, in
    /// the log and to systemd how it went. It reads files, so async code calls it where it
    /// may block.
    ///
    /// # Errors
    /// Everything that is wrong with the configuration; then nothing has changed.
    pub fn reload(&self, daemon: &impl Reloadable) -> Result<Reloaded, ReloadError> {
        let running = self.running.lock();
        let mut running = running.unwrap_or_else(PoisonError::into_inner);
        notify::reloading();
        let result = self.take(&mut running, daemon);
        note_in_metrics(result.is_ok());
        let outcome = outcome(&result);
        match &result {
            Ok(_) => tracing::info!("{outcome}"),
            Err(_) => tracing::error!(code = %ErrorCode::Configuration, "{outcome}"),
        }
        notify::ready(&outcome);
        result
    }

    fn take(&self, running: &mut Table, daemon: &impl Reloadable) -> Result<Reloaded, ReloadError> {
        let new = table(&(self.load)()?);
        let mut merged = running.clone();
        let mut reloaded = Reloaded::default();
        for (key, value) in differing(running, &new) {
            if LIVE_KEYS.contains(&key.as_str()) {
                set(&mut merged, &key, value);
                reloaded.changed.push(key);
            } else {
                reloaded.need_restart.push(key);
            }
        }
        // Two good configurations can make a bad one, so the merged one is checked too.
        let text = merged.to_string();
        let origin = "after the reload, without the keys that need a restart,";
        let config = Config::parse(&text, origin, &Host::detect())?;
        let prepared = daemon.prepare(&config).map_err(ReloadError::Refused)?;
        daemon.apply(prepared);
        *running = merged;
        Ok(reloaded)
    }
}

/// Returns the outcome of a reload in a sentence.
fn outcome(result: &Result<Reloaded, ReloadError>) -> String {
    let reloaded = match result {
        Ok(reloaded) => reloaded,
        Err(error) => return format!("the reload changed nothing: {error}"),
    };
    let mut text = match &*reloaded.changed {
        [] => "reloaded: no key has changed".to_owned(),
        changed => format!("reloaded: {} changed", changed.join(", ")),
    };
    if !reloaded.need_restart.is_empty() {
        let keys = reloaded.need_restart.join(", ");
        text.push_str(&format!("; restart the daemon to change {keys}"));
    }
    text
}

fn note_in_metrics(is_successful: bool) {
    gauge!(LAST_SUCCESSFUL).set(if is_successful { 1.0 } else { 0.0 });
    if is_successful {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        gauge!(LAST_SUCCESS_SECONDS).set(now.unwrap_or_default().as_secs_f64());
    }
}

/// Returns the effective values of all keys, by section.
fn table(config: &Config) -> Table {
    // It was written from a table, so it is one.
    config.to_toml().parse().unwrap_or_default()
}

/// Returns the keys of `new` with other values than in `old`, in the order of the alphabet.
fn differing(old: &Table, new: &Table) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (section, keys) in new {
        let keys = keys.as_table().into_iter().flatten();
        for (key, value) in keys {
            if old.get(section).and_then(|old| old.get(key)) != Some(value) {
                found.push((format!("{section}.{key}"), value.clone()));
            }
        }
    }
    found
}

/// Sets `section.key`.
fn set(table: &mut Table, name: &str, value: Value) {
    let Some((section, key)) = name.split_once('.') else {
        return;
    };
    if let Some(keys) = table.get_mut(section).and_then(Value::as_table_mut) {
        keys.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
