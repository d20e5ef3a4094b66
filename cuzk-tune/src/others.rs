//! The part of the machine's processors that other programs have while something is measured.
//!
//! Not this process's own use, which [`counters`](crate::counters) has. The invariant: a share
//! is within 0 to 1, and a machine that does not tell its use has none.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

/// The fewest ticks of a measurement, all processors together. The system counts in ticks, so
/// of fewer it knows too little.
const TICKS_MIN: u64 = 50;

/// A measurement that has begun.
#[derive(Debug)]
pub struct Others {
    began: Instant,
    own: Option<Duration>,
    ticks: Option<Ticks>,
}

/// The time of all processors together since the machine was started, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    /// In which they did something, or were not this machine's.
    busy: u64,
    all: u64,
    processors: u32,
}

impl Others {
    /// Begins a measurement.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
            own: own(),
            ticks: ticks(),
        }
    }

    /// Returns the share of the processors' time since the beginning that other programs had, or
    /// other virtual machines. None if the system does not tell it, or the measurement was too
    /// short.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        let own = own()?.checked_sub(self.own?)?;
        share([self.ticks?, ticks()?], own, self.began.elapsed())
    }
}

/// Returns the share of others between two readings, of which this process had `own`.
fn share([before, after]: [Ticks; 2], own: Duration, wall: Duration) -> Option<f64> {
    let all = after.all.checked_sub(before.all)?;
    let busy = after.busy.checked_sub(before.busy)?;
    if all < TICKS_MIN {
        return None;
    }
    let of_all = |time: Duration| time.as_secs_f64() / f64::from(after.processors);
    let own = of_all(own) / wall.as_secs_f64().max(1e-9);
    Some((busy as f64 / all as f64 - own).clamp(0.0, 1.0))
}

/// Returns the processor time that this process has had.
fn own() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let micros = |time: fn(&Usage) -> TimeVal| time(&usage).num_microseconds();
    let micros = micros(Usage::user_time) + micros(Usage::system_time);
    Some(Duration::from_micros(micros.max(0).unsigned_abs()))
}

fn ticks() -> Option<Ticks> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// Reads the lines of the processors: one of all together, and one of each.
fn parse(stat: &str) -> Option<Ticks> {
    let mut lines = stat.lines().filter(|line| line.starts_with("cpu"));
    let together = lines.next()?.strip_prefix("cpu ")?;
    let numbers: Result<Vec<u64>, _> = together.split_whitespace().map(str::parse).collect();
    // The time of guests, which follows, is a part of the first two.
    let [user, nice, system, idle, disk, interrupts, soft, stolen]: [u64; 8] =
        numbers.ok()?.get(..8)?.try_into().ok()?;
    let busy = user + nice + system + interrupts + soft + stolen;
    Some(Ticks {
        busy,
        all: busy + idle + disk,
        processors: u32::try_from(lines.count())
            .ok()
            .filter(|count| *count > 0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  10 20 30 400 50 6 7 8 9 9\ncpu0 5 10 15 200 25 3 4 4 5 5\n\
                        cpu1 5 10 15 200 25 3 3 4 4 4\nintr 5 6\nctxt 7\n";

    #[test]
    fn the_processors_are_read_from_their_lines() {
        let ticks = parse(STAT).unwrap();
        let expected = Ticks {
            busy: 81,
            all: 531,
            processors: 2,
        };
        assert_eq!(ticks, expected);
        for bad in [
            "",
            "cpu",
            "cpu 1 2 3",
            "cpu0 1 2 3 4 5 6 7 8",
            "cpu  a 2 3 4 5 6 7 8",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(
            parse("cpu  1 2 3 4 5 6 7 8\nintr 1\n"),
            None,
            "no processor"
        );
    }

    #[test]
    fn the_share_of_others_is_what_this_process_did_not_have() {
        let at = |busy, all| Ticks {
            busy,
            all,
            processors: 2,
        };
        let s = Duration::from_secs;
        // Two processors for 100 s, in 100 ticks a second.
        for (busy, own_s, expected) in [
            (10_000, 100, 0.0),
            (15_000, 100, 0.25),
            (20_000, 100, 0.5),
            (20_000, 200, 0.0),
            (10_000, 0, 0.5),
            // The clocks differ a little.
            (10_000, 101, 0.0),
        ] {
            let share = share([at(7, 9), at(7 + busy, 9 + 20_000)], s(own_s), s(100)).unwrap();
            assert!((share - expected).abs() < 1e-9, "{busy} {own_s}: {share}");
        }
        let few = TICKS_MIN - 1;
        assert_eq!(share([at(0, 0), at(few, few)], s(0), s(1)), None);
        assert_eq!(share([at(9, 90), at(8, 200)], s(0), s(1)), None);
        assert_eq!(share([at(9, 90), at(9, 80)], s(0), s(1)), None);
    }

    #[test]
    fn this_machine_has_a_share_or_does_not_tell_it() {
        let others = Others::begin();
        assert!(
            others
                .share()
                .is_none_or(|share| (0.0..=1.0).contains(&share))
        );
    }
}
