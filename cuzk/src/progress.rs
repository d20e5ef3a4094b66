//! The progress of long work, on standard error: bars and spinners on a terminal, lines of
//! the log elsewhere.
//!
//! Not the work's result. The invariant: work that takes minutes says something every half
//! minute, and work that takes a moment says nothing.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle, WeakProgressBar};

const TICK: Duration = Duration::from_millis(100);

/// The time between two lines where there is no terminal.
const LINE_TIME: Duration = Duration::from_secs(30);

/// Returns a bar for work whose length is known.
pub(crate) fn bar(what: &str) -> ProgressBar {
    let bar = ProgressBar::new(0).with_message(what.to_owned());
    styled(bar, "{msg:<32} {wide_bar} {percent:>3} % {eta:>4}")
}

/// Returns a bar for bytes, with their rate.
pub(crate) fn bytes_bar(what: &str) -> ProgressBar {
    let bar = ProgressBar::new(0).with_message(what.to_owned());
    let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta:>4}";
    styled(bar, template)
}

/// Returns a spinner for work whose length is not known.
pub(crate) fn spinner(what: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(what.to_owned());
    let spinner = styled(spinner, "{spinner} {msg} {elapsed}");
    if !spinner.is_hidden() {
        let shown = spinner.downgrade();
        // Without a thread the spinner stands still, which costs no result.
        let named = thread::Builder::new().name("cuzk-spinner".to_owned());
        named.spawn(move || turn(&shown)).ok();
    }
    spinner
}

/// Turns a spinner until it is finished or dropped. The thread that indicatif would start
/// panics where the machine has none left.
fn turn(shown: &WeakProgressBar) {
    while let Some(spinner) = shown.upgrade().filter(|spinner| !spinner.is_finished()) {
        spinner.tick();
        drop(spinner);
        thread::sleep(TICK);
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The lines of work whose length is known.
#[derive(Debug)]
struct Lines {
    what: String,
    started: Instant,
    last: Instant,
}

impl Lines {
    fn new(what: &str, now: Instant) -> Self {
        Self {
            what: what.to_owned(),
            started: now,
            last: now,
        }
    }

    /// Returns the line that is due, if one is.
    fn next(&mut self, now: Instant, done: u64, total: u64) -> Option<String> {
        if now.saturating_duration_since(self.last) < LINE_TIME || done == 0 {
            return None;
        }
        self.last = now;
        let spent = now.saturating_duration_since(self.started);
        let left = time_left(spent, done, total);
        let percent = done.min(total) * 100 / total.max(1);
        if percent == 0 {
            // The time so far may be that of compiling the circuit.
            return Some(format!("{}: less than 1 %", self.what));
        }
        let left = HumanDuration(left);
        Some(format!("{}: {percent} %, about {left} left", self.what))
    }
}

/// Returns the time that the rest takes, if it is like what is done.
pub(crate) fn time_left(spent: Duration, done: u64, total: u64) -> Duration {
    let rest = total.saturating_sub(done) as f64 / done.max(1) as f64;
    Duration::try_from_secs_f64(spent.as_secs_f64() * rest).unwrap_or(Duration::MAX)
}

/// Work whose length is known: a bar, or a line every half minute.
#[derive(Debug)]
pub(crate) struct Meter {
    bar: ProgressBar,
    lines: Lines,
}

impl Meter {
    pub(crate) fn begin(what: &str) -> Self {
        Self {
            bar: bar(what),
            lines: Lines::new(what, Instant::now()),
        }
    }

    /// Shows that `done` of `total` is done.
    pub(crate) fn set(&mut self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        if !self.bar.is_hidden() {
            return;
        }
        if let Some(line) = self.lines.next(Instant::now(), done, total) {
            tracing::info!("{line}");
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Work whose length is not known: a spinner, or a line every half minute.
#[derive(Debug)]
pub(crate) struct Doing {
    spinner: ProgressBar,
    /// The present step; none once the work has ended.
    now: Arc<(Mutex<Option<String>>, Condvar)>,
}

impl Doing {
    pub(crate) fn begin(what: &str) -> Self {
        let spinner = spinner(what);
        let now = Arc::new((Mutex::new(Some(what.to_owned())), Condvar::new()));
        if spinner.is_hidden() {
            let now = Arc::clone(&now);
            // Without a thread there are no lines, which costs no result.
            let named = thread::Builder::new().name("cuzk-progress".to_owned());
            named.spawn(move || say_lines(&now, LINE_TIME)).ok();
        }
        Self { spinner, now }
    }

    /// Shows what is done now.
    pub(crate) fn now(&self, what: &str) {
        self.spinner.set_message(what.to_owned());
        let mut now = self.now.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = Some(what.to_owned());
    }

    /// Does something that may print.
    pub(crate) fn suspend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.spinner.suspend(work)
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
        let mut now = self.now.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = None;
        self.now.1.notify_all();
    }
}

/// Says what is done, again after each `pause`, until it has ended. Returns the lines said.
fn say_lines((now, ended): &(Mutex<Option<String>>, Condvar), pause: Duration) -> usize {
    let started = Instant::now();
    let mut said = 0;
    let mut doing = now.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let is_doing = |doing: &mut Option<String>| doing.is_some();
        let waited = ended.wait_timeout_while(doing, pause, is_doing);
        doing = waited.unwrap_or_else(PoisonError::into_inner).0;
        let Some(what) = &*doing else { return said };
        let elapsed = HumanDuration(started.elapsed());
        tracing::info!("{what}: {elapsed} so far");
        said += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_bounded::BoundedJoin;

    #[test]
    fn a_line_comes_every_half_minute_with_the_time_left() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut lines = Lines::new("making", start);
        assert_eq!(lines.next(at(29), 1, 4), None);
        let line = lines.next(at(60), 1, 4).unwrap();
        assert_eq!(line, "making: 25 %, about 3 minutes left");
        assert_eq!(lines.next(at(61), 2, 4), None);
        let line = lines.next(at(120), 3, 4).unwrap();
        assert_eq!(line, "making: 75 %, about 40 seconds left");
        let line = lines.next(at(180), 1, 1000).unwrap();
        assert_eq!(line, "making: less than 1 %");
    }

    #[test]
    fn nothing_is_said_of_work_that_has_not_begun_or_is_over() {
        let start = Instant::now();
        let mut lines = Lines::new("making", start);
        assert_eq!(lines.next(start + LINE_TIME * 2, 0, 4), None);
        let over = (Mutex::new(None), Condvar::new());
        assert_eq!(say_lines(&over, Duration::ZERO), 0);
    }

    #[test]
    fn lines_come_until_the_work_ends() {
        let now = Arc::new((Mutex::new(Some("computing".to_owned())), Condvar::new()));
        let lent = Arc::clone(&now);
        let lines = thread::spawn(move || say_lines(&lent, Duration::from_millis(1)));
        thread::sleep(Duration::from_millis(50));
        *now.0.lock().unwrap() = None;
        now.1.notify_all();
        assert!(lines.join_bounded().unwrap() > 0);
    }
}
