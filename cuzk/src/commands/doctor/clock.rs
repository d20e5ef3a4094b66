//! The clock: deadlines, certificates and the ages of results depend on it.
//!
//! No other machine is asked. The invariant: a clock that is judged wrong is earlier than
//! something that has happened.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::finding::Finding;

const TOPIC: &str = "clock";

/// File systems of other machines may be a little ahead.
const TOLERANCE: Duration = Duration::from_secs(120);

pub(super) fn examine(param_cache: &Path) -> Vec<Finding> {
    let program = std::env::current_exe().ok();
    let of_program = program.and_then(|program| modified(&program));
    let newest = of_program.max(newest_in(param_cache));
    vec![judge(SystemTime::now(), newest)]
}

/// Returns when a folder, or a file in it, was written last.
fn newest_in(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| modified(&entry.path()));
    files.chain(modified(folder)).max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

fn judge(now: SystemTime, newest: Option<SystemTime>) -> Finding {
    let ahead = newest.and_then(|newest| newest.duration_since(now).ok());
    match ahead.filter(|ahead| *ahead > TOLERANCE) {
        Some(ahead) => {
            let text = format!("behind by at least {} s", ahead.as_secs());
            let advice = "this program or the parameters were written later than now: set the \
                          clock, and let NTP keep it";
            Finding::error(TOPIC, text, advice)
        }
        None => Finding::ok(TOPIC, "later than this program and the parameters"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn the_files_of_a_folder_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(newest_in(&folder.path().join("none")), None);
        let later = SystemTime::now() + Duration::from_secs(3600);
        let file = fs::File::create(folder.path().join("params")).unwrap();
        file.set_modified(later).unwrap();
        assert!(newest_in(folder.path()).unwrap() > SystemTime::now() + TOLERANCE);
    }

    #[test]
    fn a_clock_before_what_was_written_is_wrong() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let at = |seconds: i64| now.checked_add(Duration::from_secs(seconds.unsigned_abs()));
        assert_eq!(judge(now, None).level, Level::Ok);
        assert_eq!(judge(now, at(60)).level, Level::Ok);
        let wrong = judge(now, at(3600));
        assert_eq!(wrong.level, Level::Error);
        assert!(wrong.text.contains("3600 s"));
    }
}
