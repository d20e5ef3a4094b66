//! The configuration of the existing daemon of this kind, as ours.
//!
//! Not a promise that both do the same. Their keys are carried over where ours mean the
//! same. Every other key is named with the reason. The invariant: a key of the file is
//! either in the result or among those left out.

use toml::{Table, Value};

use super::keys::keys_of;
use super::problem::{ConfigError, Problem, ProblemKind, line_of};

/// A configuration that was carried over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The file in our form, without comments.
    pub toml: String,
    /// The keys that have no counterpart, in the order of the file's sections.
    pub left_out: Vec<LeftOut>,
    /// Warnings about the keys that were carried over.
    pub notes: Vec<&'static str>,
}

/// A key that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The key with its section, such as `pipeline.slot_size`.
    pub key: String,
    /// Why it has no counterpart, and what takes its place.
    pub reason: &'static str,
}

/// The reason for keys which that daemon has not either.
const UNKNOWN: &str = "the other daemon has no such key and ignored it";

/// Keys without a counterpart.
const WITHOUT: [(&str, &str, &str); 11] = [
    (
        "memory",
        "eviction_min_idle",
        "idle circuits and parameters stay until other work needs their memory; the least \
         recently used go first, whenever they were used",
    ),
    (
        "memory",
        "pinned_budget",
        "memory.total_budget bounds all memory; the other daemon ignored the key",
    ),
    (
        "memory",
        "working_memory_budget",
        "memory.total_budget bounds all memory; the other daemon ignored the key",
    ),
    (
        "scheduler",
        "max_batch_size",
        "partitions of all proofs share one queue, so nothing is batched",
    ),
    (
        "scheduler",
        "max_batch_wait_ms",
        "partitions of all proofs share one queue, so nothing waits for a batch",
    ),
    (
        "scheduler",
        "sort_by_type",
        "work is taken by its due time; jobs.normal_patience_s and jobs.low_patience_s set it",
    ),
    (
        "synthesis",
        "partition_workers",
        "the other daemon ignored the key; here it is the number of partitions that are \
         synthesised at a time, and takes memory, so set it anew",
    ),
    (
        "pipeline",
        "enabled",
        "the stages of partitions always overlap",
    ),
    (
        "pipeline",
        "slot_size",
        "a partition is always a unit of work of its own",
    ),
    (
        "srs",
        "preload",
        "the other daemon ignored the key; run `cuzk preload CIRCUIT` after the start",
    ),
    (
        "pipeline",
        "max_gpu_queue_depth",
        "0 was no bound there; pipeline.synthesis_lookahead is one here",
    ),
];

/// The values that the other daemon has by itself, where ours differ.
const DEFAULTS: [(&str, &str, &str); 4] = [
    ("daemon", "listen", "unix:///run/curio/cuzk.sock"),
    ("daemon", "status_listen", ""),
    ("memory", "safety_margin", "5GiB"),
    ("srs", "param_cache", "/data/zk/params"),
];

/// Carries a file of the existing daemon over. `origin` names the text in errors.
///
/// # Errors
/// [`ConfigError::Invalid`] for a text that is not TOML.
pub fn import(text: &str, origin: &str) -> Result<Imported, ConfigError> {
    let old: Table = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        ConfigError::Invalid {
            origin: origin.to_owned(),
            problems: vec![Problem {
                line: line_of(text.as_bytes(), at),
                section: String::new(),
                key: String::new(),
                kind: ProblemKind::Syntax(error.message().to_owned()),
            }],
        }
    })?;
    let mut import = Import {
        old,
        new: Table::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
    };
    import.server();
    import.memory();
    import.work();
    import.rest();
    import.leave_out();
    Ok(Imported {
        toml: import.new.to_string(),
        left_out: import.left_out,
        notes: import.notes,
    })
}

struct Import {
    /// The keys that nothing has looked at yet.
    old: Table,
    new: Table,
    left_out: Vec<LeftOut>,
    notes: Vec<&'static str>,
}

impl Import {
    /// Takes a key of the old file, or its value there by default.
    fn take(&mut self, section: &str, key: &str) -> Option<Value> {
        let there = self.old.get_mut(section).and_then(Value::as_table_mut);
        let value = there.and_then(|keys| keys.remove(key));
        let is_it = |(of, name, _): &&(&str, &str, &str)| *of == section && *name == key;
        let default = || DEFAULTS.iter().find(is_it);
        value.or_else(|| Some(Value::from(default()?.2)))
    }

    fn put(&mut self, section: &'static str, key: &'static str, value: Value) {
        debug_assert!(keys_of(section).iter().any(|(name, _)| *name == key));
        let keys = self
            .new
            .entry(section)
            .or_insert_with(|| Table::new().into());
        if let Some(keys) = keys.as_table_mut() {
            keys.insert(key.to_owned(), value);
        }
    }

    /// Carries a key over as it is.
    fn keep(&mut self, section: &str, key: &str, to: (&'static str, &'static str)) {
        if let Some(value) = self.take(section, key) {
            self.put(to.0, to.1, value);
        }
    }

    fn leave(&mut self, section: &str, key: &str, reason: &'static str) {
        self.left_out.push(LeftOut {
            key: format!("{section}.{key}"),
            reason,
        });
    }

    fn server(&mut self) {
        if let Some(listen) = self.take("daemon", "listen") {
            let is_local = listen.as_str().is_none_or(is_of_this_machine);
            if !is_local {
                self.notes.push(
                    "server.listen can be reached by other machines, and the daemon does not \
                     start before server.tls_certificate with server.client_ca or server.tokens, \
                     or server.plaintext_from, says who may call",
                );
            }
            self.put("server", "listen", Value::Array(vec![listen]));
        }
        self.keep("daemon", "status_listen", ("server", "http"));
    }

    fn memory(&mut self) {
        let budget = self.take("memory", "total_budget");
        let is_auto = budget
            .as_ref()
            .is_none_or(|budget| budget.as_str() == Some("auto"));
        let is_written = self.has("memory", "safety_margin");
        if let Some(budget) = budget {
            self.put("memory", "total_budget", budget);
        }
        if is_auto {
            self.keep("memory", "safety_margin", ("memory", "safety_margin"));
        } else if is_written {
            self.take("memory", "safety_margin");
            let reason = "the other daemon ignored the key beside an explicit total_budget; \
                          here the margin is a tenth of every budget unless the key says more";
            self.leave("memory", "safety_margin", reason);
        }
    }

    fn work(&mut self) {
        match self.take("gpus", "devices") {
            Some(Value::Array(list)) if list.is_empty() => {
                self.put("gpus", "devices", "auto".into());
            }
            Some(devices) => self.put("gpus", "devices", devices),
            None => {}
        }
        for key in ["gpu_threads", "gpu_workers_per_device"] {
            self.keep("gpus", key, ("gpus", key));
        }
        match self.take("synthesis", "threads") {
            Some(Value::Integer(0)) => {
                let reason = "0 was half of the cores there and is all of them here, which is \
                              the default";
                self.leave("synthesis", "threads", reason);
            }
            Some(threads) => self.put("synthesis", "threads", threads),
            None => {}
        }
        self.keep(
            "pipeline",
            "synthesis_concurrency",
            ("synthesis", "partition_workers"),
        );
        self.lookahead();
    }

    /// Both keys bound the work that waits for a GPU: in proofs, and in partitions.
    fn lookahead(&mut self) {
        let depth = self.old.get("pipeline").and_then(Value::as_table);
        let depth = depth.and_then(|keys| keys.get("max_gpu_queue_depth"));
        let depth = depth.and_then(Value::as_integer).filter(|depth| *depth > 0);
        let lookahead = self.take("pipeline", "synthesis_lookahead");
        match (depth, lookahead) {
            (Some(depth), lookahead) => {
                self.take("pipeline", "max_gpu_queue_depth");
                self.put("pipeline", "synthesis_lookahead", depth.into());
                if lookahead.is_some() {
                    let reason = "pipeline.max_gpu_queue_depth bounds the partitions that wait, \
                                  and has taken its place";
                    self.leave("pipeline", "synthesis_lookahead", reason);
                }
            }
            (None, Some(Value::Integer(0))) => {
                let reason = "a partition is always synthesised while another is proved";
                self.leave("pipeline", "synthesis_lookahead", reason);
            }
            (None, Some(lookahead)) => self.put("pipeline", "synthesis_lookahead", lookahead),
            (None, None) => {}
        }
    }

    fn rest(&mut self) {
        self.keep("srs", "param_cache", ("srs", "param_cache"));
        match self.take("logging", "level") {
            Some(Value::String(level)) if is_level(&level) => {
                self.put("logging", "level", level.into());
            }
            Some(_) => {
                let reason = "a level for each module is not supported; write one of off, error, \
                              warn, info, debug, trace";
                self.leave("logging", "level", reason);
            }
            None => {}
        }
        if let Some(format) = self.take("logging", "format") {
            let is_json = format.as_str() == Some("json");
            let format = if is_json { "json" } else { "text" };
            self.put("logging", "format", format.into());
        }
    }

    fn has(&self, section: &str, key: &str) -> bool {
        let keys = self.old.get(section).and_then(Value::as_table);
        keys.is_some_and(|keys| keys.contains_key(key))
    }

    /// Names all that is left of the old file.
    fn leave_out(&mut self) {
        for (section, value) in std::mem::take(&mut self.old) {
            let Value::Table(keys) = value else {
                self.left_out.push(LeftOut {
                    key: section,
                    reason: UNKNOWN,
                });
                continue;
            };
            for key in keys.keys() {
                let known = WITHOUT
                    .iter()
                    .find(|(of, name, _)| *of == section && name == key);
                let reason = known.map_or(UNKNOWN, |(_, _, reason)| reason);
                self.leave(&section, key, reason);
            }
        }
    }
}

/// Returns true if only programs of this machine reach the address.
fn is_of_this_machine(address: &str) -> bool {
    let host = address.trim_start_matches("tcp://");
    host.starts_with("unix:")
        || ["127.", "localhost:", "[::1]:"]
            .iter()
            .any(|local| host.starts_with(local))
}

fn is_level(level: &str) -> bool {
    let all = super::LogLevel::ALL;
    all.into_iter().any(|known| known.as_str() == level)
}

#[cfg(test)]
mod tests;
