//! Bars and spinners on standard error, for long work. They draw nothing if standard error is
//! not a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

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
    spinner.enable_steady_tick(TICK);
    styled(spinner, "{spinner} {msg} {elapsed}")
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
