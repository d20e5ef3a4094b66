//! Sends `tracing` events to standard error, as the configuration says.
//!
//! The invariant: no line has a mark of direction, which an id or the name of a file may have.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use cuzk_core::config::{LogFormat, LogLevel, Logging};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload::Handle;

use crate::shown::turns;

/// Changes the least severity that is written, while the process runs.
#[derive(Clone)]
pub(crate) struct LevelHandle(Arc<dyn Fn(LogLevel) -> Result<(), String> + Send + Sync>);

impl LevelHandle {
    /// Writes events of `level` and above from here on.
    ///
    /// # Errors
    /// Logging was started elsewhere and has ended.
    pub(crate) fn set(&self, level: LogLevel) -> Result<(), String> {
        (self.0)(level)
    }
}

impl fmt::Debug for LevelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LevelHandle")
    }
}

/// Starts logging. A second call in one process changes nothing, and its handle neither.
pub(crate) fn start(logging: &Logging) -> LevelHandle {
    let filter = filter(logging.level);
    let builder = tracing_subscriber::fmt()
        .with_ansi(is_in_colour(io::stderr().is_terminal(), |name| {
            env::var_os(name)
        }))
        // It would panic if standard error cannot be written.
        .log_internal_errors(false)
        .with_writer(|| Unturned(io::stderr()));
    // The type of the handle follows from the format.
    match logging.format {
        LogFormat::Text => {
            let builder = builder.with_env_filter(filter).with_filter_reloading();
            let handle = level_handle(builder.reload_handle());
            let _ = builder.try_init();
            handle
        }
        LogFormat::Json => {
            let builder = builder.json().with_env_filter(filter);
            let builder = builder.with_filter_reloading();
            let handle = level_handle(builder.reload_handle());
            let _ = builder.try_init();
            handle
        }
    }
}

/// An output in which marks of direction are escapes, as JSON has them. A mark could turn the line
/// round on a terminal.
struct Unturned<W>(W);

impl<W: Write> Write for Unturned<W> {
    /// Writes an event: the library writes each with one call.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(text) = std::str::from_utf8(bytes)
            .ok()
            .filter(|text| text.contains(turns))
        else {
            return self.0.write(bytes);
        };
        let mut out = String::with_capacity(text.len());
        for letter in text.chars() {
            match turns(letter) {
                true => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
                false => out.push(letter),
            }
        }
        self.0.write_all(out.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns the filter of events: those of this workspace only, because the proofs libraries
/// write very many.
fn filter(level: LogLevel) -> EnvFilter {
    let level = level.as_str();
    // The name of a crate stands for those that begin with it, such as `cuzk_server`.
    EnvFilter::new(format!("cuzk={level}"))
}

fn level_handle<S: 'static>(handle: Handle<EnvFilter, S>) -> LevelHandle {
    LevelHandle(Arc::new(move |level| {
        let reloaded = handle.reload(filter(level));
        reloaded.map_err(|error| format!("logging.level is not changed: {error}"))
    }))
}

/// Returns true if the output has colours. Files, pipes and terminals without colours get
/// plain text. So do users who ask for it (<https://no-color.org>).
fn is_in_colour(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_declined = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = variable("TERM").is_some_and(|value| value == "dumb");
    is_terminal && !is_declined && !is_dumb
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A log that the test reads.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_level_of_all_our_crates_changes_while_the_process_runs() {
        let log = Log::default();
        let writer = log.clone();
        let builder = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_env_filter(filter(LogLevel::Warn))
            .with_filter_reloading();
        let handle = level_handle(builder.reload_handle());
        tracing::subscriber::with_default(builder.finish(), || {
            let say = || {
                tracing::info!(target: "cuzk_server::life", "of the server");
                tracing::info!(target: "storage_proofs", "of others");
                let said = std::mem::take(&mut *log.0.lock().unwrap());
                String::from_utf8(said).unwrap()
            };
            assert_eq!(say(), "");
            handle.set(LogLevel::Info).unwrap();
            let said = say();
            assert!(said.contains("of the server"), "{said}");
            assert!(!said.contains("of others"), "{said}");
            handle.set(LogLevel::Off).unwrap();
            assert_eq!(say(), "");
        });
    }

    #[test]
    fn a_line_has_no_mark_of_direction() {
        let log = Log::default();
        let id = "a\u{202e}b";
        let writer = log.clone();
        let builder = tracing_subscriber::fmt().with_writer(move || Unturned(writer.clone()));
        tracing::subscriber::with_default(builder.finish(), || tracing::info!(id, "of {id}"));
        let text = String::from_utf8(std::mem::take(&mut *log.0.lock().unwrap())).unwrap();
        assert!(text.contains("of a\\u202eb"), "{text}");
        assert!(!text.contains(turns), "{text}");

        let writer = log.clone();
        let builder = tracing_subscriber::fmt().with_writer(move || Unturned(writer.clone()));
        let json = builder.json().finish();
        tracing::subscriber::with_default(json, || tracing::info!(id, "of it"));
        let text = String::from_utf8(std::mem::take(&mut *log.0.lock().unwrap())).unwrap();
        assert!(!text.contains(turns), "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["fields"]["id"], id);
    }

    #[test]
    fn colours_are_for_terminals_that_have_them() {
        let of = |is_terminal, name: &str, value: &str| {
            let is_it = |asked: &str| (asked == name).then(|| OsString::from(value));
            is_in_colour(is_terminal, is_it)
        };
        assert!(of(true, "TERM", "xterm") && of(true, "NO_COLOR", ""));
        assert!(!of(true, "TERM", "dumb") && !of(true, "NO_COLOR", "1"));
        assert!(!of(false, "TERM", "xterm"));
    }
}
