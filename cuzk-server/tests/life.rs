//! Signals and messages to systemd, each in a process of its own: this test once more.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failure in a test fails the test"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use cuzk_bounded::{Bound, BoundedChild, BoundedCommand, bounded};
use cuzk_server::life::notify;
use cuzk_server::life::signals::{Request, Signals};
use cuzk_server::life::watchdog::{Pulse, Watchdog};

/// Set in the processes that a test starts.
const IS_CHILD: &str = "CUZK_LIFE_CHILD";

fn is_child() -> bool {
    std::env::var_os(IS_CHILD).is_some()
}

/// Runs the test `name` of this file alone in a new process.
fn child(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture", "--ignored"]);
    command.env(IS_CHILD, "1").stdout(Stdio::piped());
    for variable in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] {
        command.env_remove(variable);
    }
    command
}

/// Checks that a child's test has passed. A process that finds no test of the name succeeds, too.
fn passed(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[should_panic(expected = "0 passed")]
fn a_child_without_a_test_has_not_passed() {
    passed(&child("nothing").output_bounded().unwrap());
}

/// Prints a line that the test reads.
fn tell(line: &str) {
    println!("\ntold {line}");
    std::io::stdout().flush().unwrap();
}

/// Reads the next such line.
fn hear(output: &mut BufReader<ChildStdout>) -> String {
    loop {
        let mut line = String::new();
        let read = bounded(|| output.read_line(&mut line));
        assert!(read.unwrap() > 0, "it has ended");
        if let Some(told) = line.trim_end().strip_prefix("told ") {
            return told.to_owned();
        }
    }
}

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

/// A daemon that answers its signals with lines, and ends at the second stop.
#[ignore = "a part of other tests"]
#[tokio::test]
async fn steered() {
    let _bound = Bound::default();
    if !is_child() {
        return;
    }
    let mut signals = Signals::listen().unwrap();
    tell("ready");
    loop {
        let request = signals.next().await;
        match request {
            Request::Reload => tell("reload"),
            Request::Stop(signal) => tell(&format!("stop {}", signal.name())),
            Request::StopNow(signal) => std::process::exit(signal.exit_code().into()),
        }
    }
}

#[test]
fn signals_are_requests_and_the_second_stop_is_at_once() {
    let cases = [
        (["-TERM", "-TERM"], "stop SIGTERM", 143),
        (["-INT", "-INT"], "stop SIGINT", 130),
        (["-TERM", "-INT"], "stop SIGTERM", 130),
    ];
    for ([first, second], told, code) in cases {
        let mut child = child("steered").spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(hear(&mut output), "ready");
        send("-HUP", &child);
        assert_eq!(hear(&mut output), "reload");
        send(first, &child);
        assert_eq!(hear(&mut output), told);
        // A daemon that stops still hears it.
        send("-HUP", &child);
        assert_eq!(hear(&mut output), "reload");
        send(second, &child);
        assert_eq!(child.wait_bounded().unwrap().code(), Some(code));
    }
}

/// Sends each kind of message.
#[ignore = "a part of other tests"]
#[test]
fn talking() {
    if !is_child() {
        return;
    }
    notify::ready("serves\nREADY=0");
    notify::reloading();
    notify::ready("serves again");
    notify::status("drains");
    notify::alive();
    notify::stopping("stops", Duration::from_secs(2 * 3600));
}

#[test]
fn systemd_is_told_each_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let systemd = UnixDatagram::bind(&path).unwrap();
    systemd
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let hear = || {
        let mut bytes = [0; 4096];
        let count = systemd.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    };
    let child = child("talking")
        .env("NOTIFY_SOCKET", &path)
        .spawn()
        .unwrap();
    assert_eq!(hear(), "READY=1\nSTATUS=serves READY=0\n");
    let reloading = hear();
    let lines: Vec<_> = reloading.lines().collect();
    assert_eq!(lines[0], "RELOADING=1");
    let time = lines[1].strip_prefix("MONOTONIC_USEC=").unwrap();
    assert!(time.parse::<u64>().unwrap() > 0);
    assert!(lines[2].starts_with("STATUS="), "{reloading}");
    assert_eq!(hear(), "READY=1\nSTATUS=serves again\n");
    assert_eq!(hear(), "STATUS=drains\n");
    assert_eq!(hear(), "WATCHDOG=1\n");
    let stopping = "STOPPING=1\nSTATUS=stops\nEXTEND_TIMEOUT_USEC=7200000000\n";
    assert_eq!(hear(), stopping);
    assert!(child.wait_with_output_bounded().unwrap().status.success());
}

#[test]
fn a_daemon_without_systemd_says_nothing() {
    passed(&child("talking").output_bounded().unwrap());
}

#[test]
fn a_socket_that_is_gone_costs_a_message_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let output = child("talking").env("NOTIFY_SOCKET", path).output_bounded();
    passed(&output.unwrap());
}

struct Idle;

impl Pulse for Idle {
    fn is_idle(&self) -> bool {
        true
    }

    fn checkpoints(&self) -> u64 {
        0
    }
}

/// Pings until it is ended, or says that nobody expects it.
#[ignore = "a part of other tests"]
#[tokio::test]
async fn pinging() {
    let _bound = Bound::default();
    if !is_child() {
        return;
    }
    let Some(_watchdog) = Watchdog::start(std::sync::Arc::new(Idle)).unwrap() else {
        tell("not expected");
        return;
    };
    std::future::pending::<()>().await;
}

#[test]
fn the_watchdog_is_pinged_where_systemd_expects_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let systemd = UnixDatagram::bind(&path).unwrap();
    systemd
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut command = child("pinging");
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "30000");
    let mut child = command.spawn().unwrap();
    for _ in 0..10 {
        let mut bytes = [0; 64];
        let count = systemd.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..count], b"WATCHDOG=1\n");
    }
    child.kill().unwrap();
    child.wait_bounded().unwrap();
}

#[test]
fn the_watchdog_is_not_pinged_where_nobody_expects_it() {
    let other = std::process::id().to_string();
    let cases = [
        None,
        Some(("WATCHDOG_USEC", "0")),
        Some(("WATCHDOG_USEC", "soon")),
        // The variables of a process that started this one.
        Some(("WATCHDOG_PID", other.as_str())),
    ];
    for case in cases {
        let mut command = child("pinging");
        if let Some((name, value)) = case {
            command.env("WATCHDOG_USEC", "30000").env(name, value);
        }
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(hear(&mut output), "not expected", "{case:?}");
        assert!(child.wait_bounded().unwrap().success());
    }
}
