//! Messages to systemd, which started the daemon.
//!
//! Not the protocol itself, which is `sd-notify`'s. The variable `NOTIFY_SOCKET` names
//! systemd's socket. The invariants: without the variable a message does nothing, and a
//! message that cannot be sent is a warning in the log.

use std::time::Duration;

use sd_notify::NotifyState;

/// Tells systemd that the daemon serves calls. `systemctl status` shows `status`.
pub fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
}

/// Tells systemd that the daemon reads its configuration again. [`ready`] must follow,
/// whether the reload succeeds or not.
pub fn reloading() {
    // systemd 253 and newer end a service of `Type=notify-reload` that leaves the time out.
    let now = NotifyState::monotonic_usec_now();
    let time = now.inspect_err(|error| tracing::warn!("cannot read the monotonic clock: {error}"));
    let status = NotifyState::Status("reads the configuration again");
    let states = [Some(NotifyState::Reloading), time.ok(), Some(status)];
    send(&states.into_iter().flatten().collect::<Vec<_>>());
}

/// Tells systemd that the daemon stops, within the time `within`. systemd waits that long
/// even if its own `TimeoutStopSec` is shorter.
pub fn stopping(status: &str, within: Duration) {
    // As text, since the crate's number of microseconds ends at 71 minutes.
    let extend = format!("EXTEND_TIMEOUT_USEC={}", within.as_micros());
    send(&[
        NotifyState::Stopping,
        NotifyState::Status(&one_line(status)),
        NotifyState::Custom(&extend),
    ]);
}

/// Changes the line that `systemctl status` shows.
pub fn status(status: &str) {
    send(&[NotifyState::Status(&one_line(status))]);
}

/// Tells systemd's watchdog that the daemon works.
pub fn alive() {
    send(&[NotifyState::Watchdog]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot tell systemd how the daemon stands: {error}");
    }
}

/// Returns a text without ends of lines, which would begin another message.
fn one_line(text: &str) -> String {
    let is_control = |character: char| character.is_control();
    text.split(is_control).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_line() {
        assert_eq!(one_line("line 3: bad\nREADY=0\r"), "line 3: bad READY=0 ");
    }
}
