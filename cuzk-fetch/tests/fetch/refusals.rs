//! Servers that refuse, lie about lengths and ranges, or know no ranges.

use cuzk_fetch::Event;

use crate::server::{Asked, Manner, Server};
use crate::{NAME, failure, listed, made, options, run, run_whole};

/// Returns true if a source was set aside for a reason with these words.
fn set_aside(events: &[Event], of: &str, words: &str) -> bool {
    events.iter().any(|event| {
        matches!(event, Event::SetAside { source, problem, .. }
            if source == of && problem.contains(words))
    })
}

/// Fetches from a server of this behaviour alone, which fails, and beside a good one, which
/// succeeds.
fn check(words: &str, behaviour: fn(&Asked) -> Manner) {
    let bytes = made(500_000);
    let bad = Server::start(&[(NAME, &bytes)], behaviour);
    let folder = tempfile::tempdir().unwrap();
    let alone = options(folder.path(), &[bad.url()]);
    let (report, events) = run(&listed(&[(NAME, &bytes)]), alone).unwrap();
    assert!(failure(&report).contains(words), "{words}: {report:?}");
    assert!(set_aside(&events, &bad.url(), words), "{words}: {events:?}");

    let good = Server::start(&[(NAME, &bytes)], |_| Manner::default());
    let folder = tempfile::tempdir().unwrap();
    run_whole(folder.path(), &[bad.url(), good.url()], &bytes);
}

#[test]
fn a_server_that_lies_is_set_aside() {
    check("404", |_| Manner {
        status: Some(404),
        ..Manner::default()
    });
    check("403", |_| Manner {
        status: Some(403),
        ..Manner::default()
    });
    check("416", |asked| Manner {
        status: (!asked.is_head).then_some(416),
        ..Manner::default()
    });
    check("no Content-Range", |_| Manner {
        content_range: Some(String::new()),
        ..Manner::default()
    });
    check("Content-Range is", |_| Manner {
        content_range: Some("bytes nonsense".to_owned()),
        ..Manner::default()
    });
    check("it sends 7-65535", |_| Manner {
        content_range: Some("bytes 7-65535/500000".to_owned()),
        ..Manner::default()
    });
    check("its file has 9 bytes", |_| Manner {
        content_range: Some("bytes 0-5/9".to_owned()),
        ..Manner::default()
    });
    check("encoding", |_| Manner {
        lines: vec!["Content-Encoding: gzip\r\n".to_owned()],
        ..Manner::default()
    });
    check("no file has more", |_| Manner {
        length: Some(usize::MAX >> 1),
        ..Manner::default()
    });
}

/// The file of one source is longer than that of the others.
#[test]
fn the_length_that_most_sources_tell_counts() {
    let (bytes, longer) = (made(500_000), made(500_100));
    let wrong = Server::start(&[(NAME, &longer)], |_| Manner::default());
    let good = [0, 1].map(|_| Server::start(&[(NAME, &bytes)], |_| Manner::default()));
    let folder = tempfile::tempdir().unwrap();
    let sources = [wrong.url(), good[0].url(), good[1].url()];
    run_whole(folder.path(), &sources, &bytes);
    // Of two, the first is believed until the digest is wrong.
    let folder = tempfile::tempdir().unwrap();
    let (report, _) = run_whole(folder.path(), &sources[..2], &bytes);
    assert!(!report.sources[1].is_corrupt);
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    let bytes = made(500_000);
    let server = Server::start(&[(NAME, &bytes)], |asked| Manner {
        status: (asked.number % 3 == 1).then_some(503),
        lines: vec!["Retry-After: 0\r\n".to_owned()],
        ..Manner::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let (_, events) = run_whole(folder.path(), &[server.url()], &bytes);
    let is_told =
        |event: &Event| matches!(event, Event::Retrying { problem, .. } if problem.contains("503"));
    assert!(events.iter().any(is_told), "{events:?}");
    assert!(server.sent(NAME).iter().all(|times| *times == 1));
}

#[test]
fn a_server_that_is_gone_is_given_up() {
    let bytes = made(100_000);
    let gone = Server::start(&[(NAME, &bytes)], |_| Manner::default()).url();
    let folder = tempfile::tempdir().unwrap();
    let mut alone = options(folder.path(), std::slice::from_ref(&gone));
    alone.failures_max = 2;
    let (report, events) = run(&listed(&[(NAME, &bytes)]), alone).unwrap();
    assert!(failure(&report).contains(&gone), "{report:?}");
    let is_told = |event: &Event| matches!(event, Event::GivenUp { .. });
    assert!(events.iter().any(is_told), "{events:?}");
    let good = Server::start(&[(NAME, &bytes)], |_| Manner::default());
    run_whole(folder.path(), &[gone, good.url()], &bytes);
}

#[test]
fn redirects_are_followed_and_a_circle_ends() {
    let bytes = made(300_000);
    let target = Server::start(&[("elsewhere", &bytes)], |_| Manner::default());
    let location = format!("Location: {}elsewhere\r\n", target.url());
    let source = Server::start(&[(NAME, &bytes)], move |_| Manner {
        status: Some(302),
        lines: vec![location.clone()],
        ..Manner::default()
    });
    let folder = tempfile::tempdir().unwrap();
    run_whole(folder.path(), &[source.url()], &bytes);
    assert!(target.sent("elsewhere").iter().all(|times| *times == 1));
    check("redirect", |_| Manner {
        status: Some(302),
        lines: vec![format!("Location: /{NAME}\r\n")],
        ..Manner::default()
    });
}

/// Such a server sends a file from its start. After a cut there is no other way. It cuts
/// seldomer than it may fail in a row.
#[test]
fn a_server_without_ranges_gives_a_file_even_after_a_cut() {
    let bytes = made(2_000_000);
    let whole = |asked: &Asked| Manner {
        is_whole: true,
        cut_after: (asked.number < 3).then_some(700_000),
        ..Manner::default()
    };
    let server = Server::start(&[(NAME, &bytes)], whole);
    let folder = tempfile::tempdir().unwrap();
    run_whole(folder.path(), &[server.url()], &bytes);
    // Another source gives the missing bytes, so that no byte before them comes again.
    let server = Server::start(&[(NAME, &bytes)], whole);
    let good = Server::start(&[(NAME, &bytes)], |_| Manner::default());
    let folder = tempfile::tempdir().unwrap();
    run_whole(folder.path(), &[server.url(), good.url()], &bytes);
    assert!(good.sent(NAME).iter().all(|times| *times <= 1));
}

/// It answers no HEAD, so a byte is asked for.
#[test]
fn a_server_that_knows_no_head_is_asked_for_a_byte() {
    let bytes = made(300_000);
    let server = Server::start(&[(NAME, &bytes)], |asked| Manner {
        status: asked.is_head.then_some(405),
        ..Manner::default()
    });
    let folder = tempfile::tempdir().unwrap();
    run_whole(folder.path(), &[server.url()], &bytes);
    let sent = server.sent(NAME);
    assert_eq!(sent[0], 2);
    assert!(sent[1..].iter().all(|times| *times == 1));
}
