use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use cuzk_bounded::BoundedJoin;

use super::*;

#[test]
fn a_stage_that_unwinds_is_recorded() {
    let timeline = Timeline::default();
    let trace = timeline.trace(7, Some(3)).on_device(1);
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        trace.time(Stage::Witness, || panic!("as a bad circuit would"));
    }));
    assert!(unwound.is_err());
    let spans = timeline.of_job(7);
    assert_eq!(spans.len(), 1);
    assert_eq!(
        (spans[0].stage, spans[0].partition, spans[0].device),
        (Stage::Witness, Some(3), Some(1))
    );
    assert!(timeline.of_job(8).is_empty());
}

#[test]
fn a_span_says_for_how_long_its_work_stood_aside() {
    let timeline = Timeline::default();
    let trace = timeline.trace(1, Some(0));
    let time = Duration::from_millis(5);
    let work = |stood_aside: &Cell<Duration>| {
        stood_aside.set(time);
        "the result"
    };
    assert_eq!(trace.time_throttled(Stage::Evaluate, work), "the result");
    trace.time_throttled(Stage::Evaluate, |_| ());
    trace.time(Stage::Evaluate, || ());
    let spans = timeline.spans().into_iter();
    let times: Vec<_> = spans.map(|span| span.stood_aside).collect();
    assert_eq!(times, [Some(time), None, None]);
}

#[test]
fn the_list_is_bounded() {
    let timeline = Timeline::default();
    for job in 0..=SPANS_MAX as u64 {
        timeline.trace(job, None).time(Stage::Decode, || ());
    }
    let spans = timeline.spans();
    assert_eq!(spans.len(), SPANS_MAX);
    assert_eq!(spans[0].job, Some(1));
}

#[test]
fn eight_threads_lose_nothing_and_keep_their_order() {
    let timeline = Timeline::default();
    let record = |job| {
        for partition in 0..1000 {
            let trace = timeline.trace(job, Some(partition));
            trace.time(Stage::Witness, || ());
        }
    };
    let record = &record;
    thread::scope(|scope| {
        for job in 0..8 {
            scope.spawn(move || record(job));
        }
    });
    let expected: Vec<_> = (0..1000).map(Some).collect();
    for job in 0..8 {
        let spans = timeline.of_job(job);
        let partitions: Vec<_> = spans.iter().map(|span| span.partition).collect();
        assert_eq!(partitions, expected);
        assert!(spans.iter().all(|span| span.lane == spans[0].lane));
        assert!(spans.is_sorted_by_key(|span| span.end));
    }
}

#[test]
fn a_wait_lasts_from_where_it_began_to_where_it_is_ended() {
    let timeline = Timeline::default();
    let began = timeline.epoch().elapsed();
    let wait = Wait::begin(Stage::QueueWait);
    drop(Wait::begin(Stage::ReadyWait));
    let lane = thread::scope(|scope| {
        let ended = scope.spawn(|| {
            thread::sleep(Duration::from_millis(3));
            timeline.trace(1, Some(0)).ended(wait);
            Lane::current()
        });
        ended.join_bounded().unwrap()
    });
    let spans = timeline.spans();
    assert_eq!(spans.len(), 1);
    assert_eq!((spans[0].stage, &spans[0].lane), (Stage::QueueWait, &lane));
    assert!(spans[0].start >= began && spans[0].length() >= Duration::from_millis(3));
}

#[test]
fn a_wait_from_before_the_epoch_starts_there() {
    let before = Instant::now();
    let timeline = Timeline::default();
    timeline.trace(1, None).waited(Stage::QueueWait, before);
    assert_eq!(timeline.spans()[0].start, Duration::ZERO);
}

#[test]
fn what_a_device_takes_is_added_up_apart_from_the_wait_for_it() {
    const MS: Duration = Duration::from_millis(1);
    let timeline = Timeline::default();
    let tally = DeviceTally::default();
    let trace = timeline.trace(1, Some(0)).tallied(&tally).on_device(0);
    let at = |ms| timeline.epoch() + ms * MS;
    trace.between(Stage::LockWait, at(0), at(7));
    trace.between(Stage::Device, at(7), at(10));
    trace.between(Stage::Quotient, at(7), at(8));
    trace.between(Stage::Device, at(10), at(12));
    timeline
        .trace(1, Some(1))
        .between(Stage::Device, at(0), at(50));
    assert_eq!((tally.waited(), tally.busy()), (7 * MS, 5 * MS));
    trace.time(Stage::Device, || thread::sleep(MS));
    assert!(tally.busy() >= 6 * MS);
    assert_eq!(timeline.spans().len(), 6);
}

#[test]
fn a_drop_is_timed_on_the_thread_that_does_it() {
    struct Slow;
    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(3));
        }
    }
    let timeline = Timeline::default();
    let slow = timeline.trace(4, Some(2)).timed_drop(Slow);
    assert!(timeline.spans().is_empty());
    let freeing = thread::Builder::new().name("free".to_owned());
    freeing
        .spawn(move || drop(slow))
        .unwrap()
        .join_bounded()
        .unwrap();
    let spans = timeline.of_job(4);
    assert_eq!(spans.len(), 1);
    assert_eq!(
        (spans[0].stage, spans[0].partition, spans[0].lane.name()),
        (Stage::Dealloc, Some(2), "free")
    );
    assert!(spans[0].length() >= Duration::from_millis(3));
}
