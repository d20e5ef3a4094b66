//! The owner's connection, which may not be there yet, and the reason for which it is not.
//!
//! It decides nothing. The invariants:
//!
//! * There is at most one connection, which the client library mends by itself.
//! * A problem is logged when it begins, and not each time that it is met again.
//! * Only the last event of the connection waits.

use std::sync::{Mutex, OnceLock};

use async_nats::Event;
use tokio::sync::watch;

use super::super::{ClusterError, Connection, Settings, connect, lock};

/// The owner's connection to the server.
pub(super) struct Link {
    settings: Settings,
    connection: OnceLock<Connection>,
    problem: Mutex<Option<String>>,
    changes: watch::Sender<Change>,
}

/// The last change of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    /// The number of changes so far. A short loss is seen by it.
    number: u64,
    pub(super) is_connected: bool,
}

impl Link {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            connection: OnceLock::new(),
            problem: Mutex::default(),
            changes: watch::Sender::new(Change::default()),
        }
    }

    /// Returns the connection.
    ///
    /// # Errors
    /// [`ClusterError::Request`] before the first connection.
    pub(super) fn connection(&self) -> Result<&Connection, ClusterError> {
        let missing = || ClusterError::request("connect", "there is no connection yet");
        self.connection.get().ok_or_else(missing)
    }

    /// Connects, unless that was done. To be called by one task at a time.
    ///
    /// # Errors
    /// The reason for which there is no connection.
    pub(super) async fn connect(&self, name: &str) -> Result<(), ClusterError> {
        if self.connection.get().is_some() {
            return Ok(());
        }
        let changes = self.changes.clone();
        let on_event = move |event: Event| {
            let is_connected = match event {
                Event::Connected => true,
                Event::Disconnected | Event::Closed => false,
                _ => return,
            };
            changes.send_modify(|change| note(change, is_connected));
        };
        let connected = connect(&self.settings, name, on_event).await?;
        let _ = self.connection.set(connected);
        self.changes.send_if_modified(|change| {
            let is_first = change.number == 0;
            if is_first {
                note(change, true);
            }
            is_first
        });
        Ok(())
    }

    /// Returns a receiver of the changes, which has the last one only.
    pub(super) fn changes(&self) -> watch::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Notes a problem, and logs it if it is another one than before.
    pub(super) fn failed(&self, error: &ClusterError) {
        let text = error.to_string();
        let mut problem = lock(&self.problem);
        if problem.as_ref() != Some(&text) {
            tracing::warn!("cluster: {text}");
            *problem = Some(text);
        }
    }

    /// Notes that all is well.
    pub(super) fn worked(&self) {
        let problem = lock(&self.problem).take();
        if problem.is_some() {
            tracing::info!("cluster: the server works");
        }
    }

    pub(super) fn problem(&self) -> Option<String> {
        lock(&self.problem).clone()
    }

    /// Returns the addresses of the server.
    pub(super) fn addresses(&self) -> &[String] {
        &self.settings.addresses
    }
}

fn note(change: &mut Change, is_connected: bool) {
    change.number += 1;
    change.is_connected = is_connected;
}
