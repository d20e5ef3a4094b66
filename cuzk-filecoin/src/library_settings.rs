//! The settings of the proofs libraries. These read the environment and a file of the
//! working directory by themselves, the first time that they need one. They panic if they
//! cannot.
//!
//! Not the engine's configuration. The invariant: settings are read here before a library
//! reads them, and settings at which it would panic are an error.

use std::env;
use std::sync::OnceLock;

use config::{Config, Environment, File};
use storage_proofs_core::settings::{SETTINGS, Settings};

use crate::Error;

/// The file and the variables that the libraries read.
const FILE: &str = "./rust-fil-proofs.config.toml";
const PREFIX: &str = "FIL_PROOFS";

/// Returns the settings of the libraries.
///
/// # Errors
/// [`Error::InvalidRequest`] if they cannot be read, in this process's lifetime.
pub(crate) fn library_settings() -> Result<&'static Settings, Error> {
    static PROBLEM: OnceLock<Option<[String; 3]>> = OnceLock::new();
    match PROBLEM.get_or_init(|| check().err()) {
        None => Ok(&SETTINGS),
        Some([field, problem, advice]) => Err(Error::request(field, problem, advice)),
    }
}

/// Reads the settings as they do. An error is the field, its problem and the advice.
fn check() -> Result<(), [String; 3]> {
    let odd = env::vars_os().find(|(name, value)| name.to_str().and(value.to_str()).is_none());
    if let Some((name, _)) = odd {
        return Err([
            format!("the environment variable {}", name.display()),
            "is not UTF-8, which the proofs libraries do not bear".to_owned(),
            "unset it and start again".to_owned(),
        ]);
    }
    let read = Config::builder()
        .add_source(File::with_name(FILE).required(false))
        .add_source(Environment::with_prefix(PREFIX))
        .build()
        .and_then(Config::try_deserialize::<Settings>);
    match read {
        Ok(_) => Ok(()),
        Err(problem) => Err([
            format!("the proofs libraries' settings ({PREFIX}_… and {FILE})"),
            problem.to_string(),
            "mend or unset them and start again".to_owned(),
        ]),
    }
}
