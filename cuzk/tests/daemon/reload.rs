//! A configuration that is read again: all of it or nothing.

use crate::fixture::Daemon;

/// Runs `cuzk reload`, and returns its exit code and what it said.
fn reload(daemon: &Daemon) -> (Option<i32>, String) {
    let output = daemon.command(&["reload"]);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn a_daemon_without_a_file_has_nothing_to_change() {
    let mut daemon = Daemon::start_with(None, &[], None);
    daemon.client().await;
    for _ in 0..2 {
        assert_eq!(reload(&daemon), (Some(0), "nothing changed\n".to_owned()));
    }
}

#[tokio::test]
async fn keys_change_or_are_named_and_an_error_changes_nothing() {
    let mut daemon = Daemon::start("[server]\ndrain_s = 5\n");
    daemon.client().await;
    assert_eq!(reload(&daemon), (Some(0), "nothing changed\n".to_owned()));
    daemon.write_config("[server]\ndrain_s = 6\nsocket_mode = \"0600\"\n");
    let expected = "in effect: server.drain_s\nneed a restart: server.socket_mode\n";
    assert_eq!(reload(&daemon), (Some(0), expected.to_owned()));
    daemon.write_config("[server]\ndrain_s = 7\nlisten = [\"nowhere\"]\n");
    let (code, said) = reload(&daemon);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("line 3: [server] listen"), "{said}");
    let (_, metrics) = daemon.page("/metrics");
    assert!(
        metrics.contains("cuzk_config_last_reload_successful 0"),
        "{metrics}"
    );
    // Nothing of the bad file is in effect: the drain is still new.
    daemon.write_config("[server]\ndrain_s = 7\n");
    let expected = "in effect: server.drain_s\n";
    assert_eq!(reload(&daemon), (Some(0), expected.to_owned()));
    let (_, metrics) = daemon.page("/metrics");
    assert!(
        metrics.contains("cuzk_config_last_reload_successful 1"),
        "{metrics}"
    );
}

/// A signal does the same as the command.
#[tokio::test]
async fn a_hangup_reloads() {
    let mut daemon = Daemon::start("");
    daemon.client().await;
    daemon.write_config("[server]\ndrain_s = 6\n");
    daemon.signal("HUP");
    daemon.await_log("reloaded: server.drain_s changed");
}

#[tokio::test]
async fn a_listener_does_not_lose_its_protection() {
    let protected = "[server]\nplaintext_from = [\"10.0.0.0/8\"]\n";
    let other = ["--listen", "tcp://0.0.0.0:0"];
    let mut daemon = Daemon::start_with(Some(protected), &other, None);
    daemon.client().await;
    daemon.write_config("[server]\ndrain_s = 6\n");
    let (code, said) = reload(&daemon);
    assert_eq!(code, Some(1), "{said}");
    for part in ["server.listen", "0.0.0.0", "server.plaintext_from"] {
        assert!(said.contains(part), "{said}");
    }
    daemon.write_config(protected);
    assert_eq!(reload(&daemon), (Some(0), "nothing changed\n".to_owned()));
}
