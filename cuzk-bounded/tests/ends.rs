//! A wait that is in vain ends its process, and says where it was.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use cuzk_bounded::{
    BoundedBarrier, BoundedChild, BoundedCommand, BoundedJoin, BoundedReceiver, bounded, bounded_by,
};

#[test]
fn a_wait_that_ends_has_its_result() {
    assert_eq!(bounded(|| 3), 3);
    assert_eq!(thread::spawn(|| 4).join_bounded().unwrap(), 4);
    let scoped = thread::scope(|scope| scope.spawn(|| 5).join_bounded().unwrap());
    assert_eq!(scoped, 5);
    let (sender, receiver) = channel();
    sender.send(6).unwrap();
    assert_eq!(receiver.recv_bounded(), Ok(6));
    drop(sender);
    assert!(receiver.recv_bounded().is_err());
    let barrier = Arc::new(Barrier::new(2));
    let other = Arc::clone(&barrier);
    let other = thread::spawn(move || other.wait_bounded().is_leader());
    assert_ne!(
        barrier.wait_bounded().is_leader(),
        other.join_bounded().unwrap()
    );
}

#[test]
fn a_process_that_ends_has_its_output() {
    let mut list = Command::new(std::env::current_exe().unwrap());
    list.arg("--list");
    let output = list.output_bounded().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("a_process_that_ends_has_its_output"),
        "{text}"
    );
    list.stdout(Stdio::piped());
    assert!(list.status_bounded().unwrap().success());
    assert!(list.spawn().unwrap().wait_bounded().unwrap().success());
    let output = list.spawn().unwrap().wait_with_output_bounded().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
}

/// Nothing is ever sent, and the scope would wait for the thread after a panic.
#[test]
#[ignore = "a process of its own runs it"]
fn waits_in_vain() {
    let (sender, receiver) = channel::<()>();
    let keep: Sender<()> = sender.clone();
    thread::scope(|scope| {
        let waits = scope.spawn(move || bounded_by(Duration::from_millis(1), || receiver.recv()));
        drop(waits.join_bounded());
    });
    drop(keep);
}

#[test]
fn a_wait_in_vain_ends_the_process_with_its_place() {
    let mut program = Command::new(std::env::current_exe().unwrap());
    let output = program
        .args(["--exact", "waits_in_vain", "--ignored"])
        .output_bounded()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains("tests/ends.rs:"), "{said}");
    assert!(said.contains("in vain"), "{said}");
}
