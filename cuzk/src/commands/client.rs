//! The daemon that a command calls: its address, the credentials, and the end by a signal.
//!
//! Not the calls, which are in `cuzk_server::client`. The invariant: a signal ends a command
//! also while it waits for the daemon.

use std::fmt;
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

use clap::Args;
use cuzk_core::config::Address;
use cuzk_core::error::ErrorCode;
use cuzk_server::client::{Client, ClientError, Credentials};

use super::waiting::Again;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::threads::no_runtime;

/// The time between two looks for a signal.
const POLL: Duration = Duration::from_millis(100);

/// The variable with the token itself. An argument would be seen by every user of the
/// machine.
const TOKEN: &str = "CUZK_TOKEN";

#[derive(Debug, Args)]
pub(crate) struct Daemon {
    /// The daemon: unix:///PATH or tcp://HOST:PORT.
    #[arg(
        long,
        value_name = "ADDR",
        env = "CUZK_ADDRESS",
        default_value = "tcp://127.0.0.1:9820"
    )]
    pub(crate) address: Address,
    /// The authority that signed the daemon's certificate, as a PEM file. With it the
    /// connection is encrypted.
    #[arg(long, value_name = "FILE", env = "CUZK_CA")]
    ca: Option<PathBuf>,
    /// The certificate of this client, as a PEM file.
    #[arg(long, value_name = "FILE", env = "CUZK_CERTIFICATE", requires = "key")]
    certificate: Option<PathBuf>,
    /// The key of the certificate, as a PEM file.
    #[arg(long, value_name = "FILE", env = "CUZK_KEY", requires = "certificate")]
    key: Option<PathBuf>,
    /// The name in the daemon's certificate, if it is not the host of the address.
    #[arg(long, value_name = "NAME", env = "CUZK_SERVER_NAME")]
    server_name: Option<String>,
    /// A file with the token on a line of its own. The variable CUZK_TOKEN can have the
    /// token itself.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Daemon {
    /// Connects to the daemon.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&self.address, &self.credentials()?).await?)
    }

    /// Connects to the daemon, and connects again if it ends the connection at once: it may
    /// restart. Where nothing answers the first time, the address may be wrong.
    pub(super) async fn connect_again(&self, again: &mut Again) -> Result<Client, Failure> {
        let credentials = self.credentials()?;
        let mut was_there = false;
        loop {
            let began = Instant::now();
            match Client::connect(&self.address, &credentials).await {
                Ok(client) => return Ok(client),
                Err(error) if was_there || matches!(error, ClientError::Lost { .. }) => {
                    was_there = true;
                    again.pause(began, error).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn credentials(&self) -> Result<Credentials, Failure> {
        let token = match &self.token_file {
            Some(path) => Some(Credentials::read_token(path)?),
            None => std::env::var(TOKEN).ok().filter(|token| !token.is_empty()),
        };
        Ok(Credentials {
            authority: self.ca.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            server_name: self.server_name.clone(),
            token,
        })
    }
}

/// Returns the result of `work`, unless a signal comes before. `left` then describes the
/// state in which the work is left.
pub(crate) fn wait<T>(
    left: impl fmt::Display,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let interrupt = Interrupt::watch()?;
    let runtime = cuzk_cluster::runtime::without_threads();
    let runtime = runtime.map_err(|error| no_runtime(&error))?;
    runtime.block_on(async {
        let mut work = pin!(work);
        loop {
            if let Ok(result) = tokio::time::timeout(POLL, &mut work).await {
                return result;
            }
            if let Some(signal) = interrupt.signal() {
                return Err(Failure::stopped(signal, left));
            }
        }
    })
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        // A daemon of an older version names no code.
        let (message, code) = ErrorCode::split(&message);
        let or_else = match &error {
            ClientError::File { .. } => ErrorCode::File,
            error if error.is_input() => ErrorCode::Argument,
            _ => ErrorCode::Daemon,
        };
        Self::new(code.unwrap_or(or_else), message)
    }
}
