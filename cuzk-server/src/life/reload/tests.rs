use std::cell::{Cell, RefCell};
use std::fs;

use cuzk_core::config::{LogLevel, SECTIONS};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use super::*;

/// A daemon that remembers what it was given.
#[derive(Default)]
struct Double {
    refuses: Cell<bool>,
    prepared: RefCell<Vec<LogLevel>>,
    applied: RefCell<Vec<LogLevel>>,
}

impl Reloadable for Double {
    type Prepared = LogLevel;

    fn prepare(&self, config: &Config) -> Result<LogLevel, String> {
        assert!(!config.pipeline.throttle, "it needs a restart");
        let level = config.logging.level;
        self.prepared.borrow_mut().push(level);
        if self.refuses.get() {
            return Err("server.tls_key: not the certificate's; give both of one pair".to_owned());
        }
        Ok(level)
    }

    fn apply(&self, prepared: LogLevel) {
        self.applied.borrow_mut().push(prepared);
    }
}

struct Daemon {
    folder: tempfile::TempDir,
    double: Double,
    reloader: Reloader,
}

impl Daemon {
    fn start(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cuzk.toml");
        fs::write(&path, text).unwrap();
        let reloader = Reloader::of_file(&Config::load(&path).unwrap(), Some(path));
        Self {
            folder,
            double: Double::default(),
            reloader,
        }
    }

    fn reload(&self, text: &str) -> Result<Reloaded, String> {
        fs::write(self.folder.path().join("cuzk.toml"), text).unwrap();
        let result = self.reloader.reload(&self.double);
        result.map_err(|error| error.to_string())
    }

    fn applied(&self) -> Vec<LogLevel> {
        self.double.applied.borrow().clone()
    }
}

fn reloaded(changed: &[&str], need_restart: &[&str]) -> Result<Reloaded, String> {
    let owned = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect();
    Ok(Reloaded {
        changed: owned(changed),
        need_restart: owned(need_restart),
    })
}

const QUIET: &str = "[logging]\nlevel = \"warn\"\n";
const QUIET_AND_OTHER: &str =
    "[logging]\nlevel = \"warn\"\nformat = \"json\"\n[pipeline]\nthrottle = true\n";
const OTHER_KEYS: [&str; 2] = ["logging.format", "pipeline.throttle"];

#[test]
fn the_keys_that_can_change_do_and_the_others_are_named_each_time() {
    let daemon = Daemon::start("");
    assert_eq!(daemon.reload(""), reloaded(&[], &[]));
    let both = daemon.reload(QUIET_AND_OTHER);
    assert_eq!(both, reloaded(&["logging.level"], &OTHER_KEYS));
    assert_eq!(daemon.reload(QUIET_AND_OTHER), reloaded(&[], &OTHER_KEYS));
    assert_eq!(daemon.reload(QUIET), reloaded(&[], &[]));
    let applied = [
        LogLevel::Info,
        LogLevel::Warn,
        LogLevel::Warn,
        LogLevel::Warn,
    ];
    assert_eq!(daemon.applied(), applied);
}

#[test]
fn an_error_in_the_file_changes_nothing() {
    let daemon = Daemon::start("");
    let error =
        daemon.reload("[logging]\nlevel = \"warn\"\nformat = \"xml\"\n[srs]\nmultiple = []\n");
    let error = error.unwrap_err();
    for part in ["line 3: [logging] format", "line 5: [srs] multiple"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(daemon.double.prepared.borrow().is_empty());
    assert_eq!(daemon.reload(QUIET), reloaded(&["logging.level"], &[]));
}

#[test]
fn a_refusal_of_a_part_changes_nothing() {
    let daemon = Daemon::start("");
    daemon.double.refuses.set(true);
    let error = daemon.reload(QUIET).unwrap_err();
    assert!(error.starts_with("server.tls_key: "), "{error}");
    assert!(daemon.applied().is_empty());
    daemon.double.refuses.set(false);
    assert_eq!(daemon.reload(QUIET), reloaded(&["logging.level"], &[]));
}

#[test]
fn a_daemon_without_a_file_reads_the_files_that_it_names() {
    let double = Double::default();
    let reloader = Reloader::of_file(&Config::default(), None);
    assert_eq!(reloader.reload(&double).unwrap(), Reloaded::default());
    assert_eq!(double.applied.borrow().len(), 1);
}

#[test]
fn the_command_line_takes_precedence() {
    let given = |text: &str| {
        let mut config = Config::parse(text, "a test", &Host::detect()).unwrap();
        config.pipeline.throttle = false;
        config
    };
    let text = "[pipeline]\nthrottle = true\n";
    let reloader = Reloader::new(&given(""), move || Ok(given(text)));
    let double = Double::default();
    assert_eq!(reloader.reload(&double).unwrap(), Reloaded::default());
}

#[test]
fn metrics_say_how_the_last_reload_went() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    // A snapshot empties the recorder, so each asks for both.
    let gauges = || {
        let all = snapshotter.snapshot().into_vec();
        let gauge = |name: &str| {
            let found = all.iter().find(|(key, ..)| key.key().name() == name);
            match found.unwrap().3 {
                DebugValue::Gauge(value) => value.into_inner(),
                _ => panic!("{name} is no gauge"),
            }
        };
        (gauge(LAST_SUCCESSFUL) > 0.0, gauge(LAST_SUCCESS_SECONDS))
    };
    metrics::with_local_recorder(&recorder, || {
        describe();
        let daemon = Daemon::start("");
        let (is_successful, started_s) = gauges();
        assert!(is_successful && started_s > 1.7e9, "{started_s}");
        daemon.reload(QUIET).unwrap();
        let (is_successful, reloaded_s) = gauges();
        assert!(is_successful && reloaded_s >= started_s);
        daemon.reload("[logging]\nlevel = 3\n").unwrap_err();
        assert!(!gauges().0);
        daemon.reload(QUIET).unwrap();
        assert!(gauges().0);
    });
}

#[test]
fn the_outcome_names_the_keys() {
    let told = |changed: &[&str], need_restart: &[&str]| {
        let result = reloaded(changed, need_restart).map_err(ReloadError::Refused);
        outcome(&result)
    };
    assert_eq!(told(&[], &[]), "reloaded: no key has changed");
    let both = told(&["a.b", "a.c"], &["d.e"]);
    let expected = "reloaded: a.b, a.c changed; restart the daemon to change d.e";
    assert_eq!(both, expected);
    let refused = Err(ReloadError::Refused("a.b: bad".to_owned()));
    assert_eq!(outcome(&refused), "the reload changed nothing: a.b: bad");
}

#[test]
fn each_live_key_is_a_key_and_each_key_is_compared() {
    let mut all = Vec::new();
    for (section, keys) in SECTIONS {
        all.extend(keys.iter().map(|(key, _)| format!("{section}.{key}")));
    }
    let mut compared: Vec<_> = differing(&Table::new(), &table(&Config::default()))
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    compared.sort();
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(compared, sorted);
    for key in LIVE_KEYS {
        let section = key.split('.').next().unwrap();
        let is_known = SECTIONS.iter().any(|(name, _)| *name == section);
        assert!(!is_known || all.iter().any(|name| name == key), "{key}");
    }
}
