//! The keys of a configuration file: their sections, what a value of each is, and advice
//! for a key that does not exist.
//!
//! Not their values. The invariant: [`SECTIONS`] lists each key of each section once.

use toml::de::DeValue;

use super::problem::{ProblemKind, nearest};

/// A key, and what its value is in the operator's words.
type Key = (&'static str, &'static str);

/// Every section with its keys.
pub const SECTIONS: &[(&str, &[Key])] = &[
    (
        "srs",
        &[
            ("param_cache", "a path in quotes"),
            (
                "multiples",
                "a list of kinds of \"porep\", \"winning-post\", \"window-post\", \"snap-deals\"",
            ),
            ("check_digests", "true or false"),
            (
                "sources",
                "a list of folders, \"https://HOST/PATH\", \"ipfs://GATEWAY\" or \"cuzk://HOST:PORT\"",
            ),
        ],
    ),
    (
        "synthesis",
        &[
            ("threads", "a whole number (0 for all cores)"),
            ("partition_workers", "a whole number, at least 1"),
            ("circuit", "one of \"compiled\", \"plain\""),
        ],
    ),
    (
        "gpus",
        &[
            (
                "devices",
                "\"cpu\", \"auto\" or a list of device ordinals such as [0, 1]",
            ),
            ("gpu_threads", "a whole number (0 for all cores)"),
            ("gpu_workers_per_device", "a whole number, at least 1"),
            ("faults_max", "a whole number, at least 1"),
            ("stall_s", "a whole number of seconds, at least 1"),
            ("rest_s", "a whole number of seconds, at least 1"),
            ("b_g2", "one of \"cpu\", \"device\", \"auto\""),
            (
                "memory_limit",
                "a size such as \"16GiB\", a number of bytes, or \"auto\"",
            ),
        ],
    ),
    (
        "cpu",
        &[(
            "isa",
            "one of \"auto\", \"ifma\", \"avx2\", \"scalar\", \"portable\"",
        )],
    ),
    (
        "memory",
        &[
            (
                "total_budget",
                "a size such as \"16GiB\", a number of bytes, or \"auto\"",
            ),
            (
                "safety_margin",
                "a size such as \"2GiB\", a number of bytes, or \"auto\"",
            ),
            (
                "critical_reserve",
                "a size such as \"512MiB\" (\"0B\" for none), a number of bytes, or \"auto\"",
            ),
            ("dealloc", "one of \"recycle\", \"serial\", \"unbounded\""),
        ],
    ),
    (
        "pipeline",
        &[
            ("synthesis_lookahead", "a whole number, at least 1"),
            ("finish_workers", "a whole number, at least 1"),
            ("max_batch", "a whole number, at least 1"),
            ("throttle", "true or false"),
            ("throttle_manner", "one of \"sleep\", \"yield\""),
        ],
    ),
    (
        "jobs",
        &[
            ("queued_partitions", "a whole number, at least 1"),
            ("results_kept", "a whole number, at least 1"),
            ("results_kept_s", "a whole number of seconds, at least 1"),
            ("normal_patience_s", "a whole number of seconds, at least 1"),
            ("low_patience_s", "a whole number of seconds, at least 1"),
            ("journal", "a path in quotes, or \"\" for no journal"),
        ],
    ),
    (
        "server",
        &[
            (
                "listen",
                "a list of addresses such as \"unix:///run/cuzk/cuzk.sock\" or \"tcp://127.0.0.1:9820\"",
            ),
            ("http", "\"HOST:PORT\", or \"\" for no HTTP"),
            (
                "socket_mode",
                "octal permissions in quotes such as \"0660\"",
            ),
            ("socket_group", "the name of a group in quotes, or \"\""),
            ("tls_certificate", "a path in quotes, or \"\" for no TLS"),
            ("tls_key", "a path in quotes, or \"\" for no TLS"),
            (
                "client_ca",
                "a path in quotes, or \"\" for no client certificates",
            ),
            ("tokens", "a path in quotes, or \"\" for no tokens"),
            (
                "plaintext_from",
                "a list of networks such as \"10.0.0.0/8\" or \"fd00::/8\"",
            ),
            (
                "request_memory",
                "a size such as \"1GiB\", a number of bytes, or \"auto\"",
            ),
            ("drain_s", "a whole number of seconds, at least 1"),
            (
                "state_dir",
                "a path in quotes, or \"\" for the environment's",
            ),
            ("serve_params", "true or false"),
        ],
    ),
    (
        "cluster",
        &[
            (
                "servers",
                "a list of servers such as \"nats://10.0.0.1:4222\" or \"tls://nats.example.com:4222\"",
            ),
            (
                "name",
                "a name of 1 to 64 letters, digits, \"-\" and \"_\", or \"\" for the host's",
            ),
            ("local", "true or false"),
            (
                "credentials",
                "a path in quotes, or \"\" for no credentials",
            ),
            (
                "server_ca",
                "a path in quotes, or \"\" for the authorities of the system",
            ),
            (
                "client_certificate",
                "a path in quotes, or \"\" for no certificate",
            ),
            ("client_key", "a path in quotes, or \"\" for no certificate"),
            (
                "work_bytes_max",
                "a size such as \"8GiB\", a number of bytes, or \"auto\"",
            ),
            (
                "object_bytes_max",
                "a size such as \"8GiB\", a number of bytes, or \"auto\"",
            ),
            ("age_max_s", "a whole number of seconds, at least 1"),
            ("replicas", "a whole number from 1 to 5"),
        ],
    ),
    (
        "logging",
        &[
            (
                "level",
                "one of \"off\", \"error\", \"warn\", \"info\", \"debug\", \"trace\"",
            ),
            ("format", "\"text\" or \"json\""),
        ],
    ),
];

/// Returns what the value of `section.key` is, in words.
pub(super) fn expected(section: &str, key: &str) -> &'static str {
    keys_of(section)
        .iter()
        .find(|(name, _)| *name == key)
        .map_or("a known key", |(_, what)| what)
}

/// Returns the keys of a section; none if there is no such section.
pub(super) fn keys_of(section: &str) -> &'static [Key] {
    SECTIONS
        .iter()
        .find(|(name, _)| *name == section)
        .map_or(&[], |(_, keys)| keys)
}

/// Returns the problem of a name at the top of the file that is no section: a misspelt
/// section, or a key that lost its section.
pub(super) fn unknown_at_root(name: &str, value: &DeValue<'_>) -> ProblemKind {
    let sections = SECTIONS.iter().map(|(section, _)| *section);
    if value.is_table() || value.is_array() {
        return match nearest(name, sections) {
            Some(section) => ProblemKind::UnknownSection {
                advice: format!("did you mean [{section}]?"),
            },
            None => ProblemKind::UnknownSection {
                advice: format!("the sections are {}", list(SECTIONS)),
            },
        };
    }
    unknown_key("", name)
}

/// Returns the problem of a key that its section does not have: it is misspelt, or
/// belongs to another section.
pub(super) fn unknown_key(section: &str, key: &str) -> ProblemKind {
    let own = keys_of(section);
    let other = SECTIONS
        .iter()
        .find(|(_, keys)| keys.iter().any(|(name, _)| *name == key));
    let everywhere = SECTIONS
        .iter()
        .flat_map(|(_, keys)| keys.iter().map(|(name, _)| *name));
    let advice = if let Some((home, _)) = other {
        format!("it belongs in [{home}]")
    } else if let Some(name) = nearest(key, own.iter().map(|(name, _)| *name)) {
        format!("did you mean `{name}`?")
    } else if let Some(name) = nearest(key, everywhere) {
        let home = SECTIONS
            .iter()
            .find(|(_, keys)| keys.iter().any(|(own, _)| *own == name));
        format!(
            "did you mean `{name}` in [{}]?",
            home.map_or("", |(home, _)| home)
        )
    } else if own.is_empty() {
        format!(
            "every key belongs in one of the sections {}",
            list(SECTIONS)
        )
    } else {
        let names: Vec<_> = own.iter().map(|(name, _)| format!("`{name}`")).collect();
        format!("[{section}] has {}", names.join(", "))
    };
    ProblemKind::UnknownKey { advice }
}

fn list(sections: &[(&str, &[Key])]) -> String {
    let names: Vec<_> = sections
        .iter()
        .map(|(name, _)| format!("[{name}]"))
        .collect();
    names.join(", ")
}
