//! The order of crates and modules.

/// Crates from the bottom up. Those of one layer do not import each other.
pub(super) const LAYERS: &[&[&str]] = &[
    &["cuzk-bounded", "cuzk-files", "cuzk-fuzz", "cuzk-memory"],
    &[
        "cuzk-fetch",
        "cuzk-journal",
        "cuzk-kernels",
        "cuzk-scheduler",
        "cuzk-timeline",
        "cuzk-tune",
        "supraseal-sys",
    ],
    &["cuzk-cluster", "cuzk-pce", "cuzk-plan"],
    &["cuzk-witness"],
    &["cuzk-groth16", "cuzk-filecoin"],
    &["cuzk-core", "cuzk-testing"],
    &["cuzk-ffi", "cuzk-server"],
    &["cuzk", "cuzk-python", "benches", "house"],
    &["cuzk-mutants"],
];

/// The children of a module from the bottom up: each imports only those before it.
pub(super) const ORDERS: &[(&str, &[&str])] = &[
    (
        "cuzk_core",
        &[
            "config",
            "error",
            "panics",
            "circuits",
            "aggregate",
            "pipeline",
            "job",
            "engine",
        ],
    ),
    (
        "cuzk_core::engine",
        &[
            "signal",
            "start",
            "jobs",
            "assets",
            "attempt",
            "deadlines",
            "dispatch",
            "fleet",
            "route",
            "compute",
            "devices",
            "reverify",
            "elsewhere",
            "core",
            "entrance",
            "workers",
            "remote",
            "preload",
            "aggregation",
            "submission",
            "status",
        ],
    ),
    (
        "cuzk_ffi",
        &[
            "error",
            "input",
            "options",
            "signal",
            "engine",
            "job",
            "aggregate",
        ],
    ),
    (
        "cuzk_filecoin",
        &[
            "error",
            "proof_kind",
            "sector_size",
            "registered",
            "tree",
            "circuit_id",
            "library_settings",
            "request",
            "kinds",
            "verify",
            "reference",
            "vanilla",
        ],
    ),
    (
        "cuzk_filecoin::kinds",
        &[
            "visitor",
            "statement",
            "native",
            "shape",
            "partition",
            "fault",
            "post",
            "porep",
            "snap_deals",
            "window_post",
            "winning_post",
            "blank",
        ],
    ),
    (
        "cuzk_groth16",
        &[
            "apart",
            "error",
            "once_map",
            "query_lengths",
            "circuit_sizes",
            "circuit",
            "params",
            "memory",
            "evaluate",
            "backend",
            "verify",
            "aggregate",
            "prover",
            "bellperson",
        ],
    ),
];

/// A circle that remains, and why.
pub(super) struct Circle {
    /// The module whose children it is of.
    pub(super) of: &'static str,
    /// The children, in the order of the alphabet.
    pub(super) modules: &'static [&'static str],
    pub(super) reason: &'static str,
}

pub(super) const CIRCLES: &[Circle] = &[];
