//! The order of crates and modules.

/// Crates from the bottom up. Those of one layer do not import each other.
pub(super) const LAYERS: &[&[&str]] = &[
    &["cuzk-files", "cuzk-memory"],
    &[
        "cuzk-journal",
        "cuzk-kernels",
        "cuzk-scheduler",
        "cuzk-timeline",
        "cuzk-tune",
        "supraseal-sys",
    ],
    &["cuzk-pce"],
    &["cuzk-witness"],
    &["cuzk-groth16", "cuzk-filecoin"],
    &["cuzk-core", "cuzk-testing"],
    &["cuzk", "benches"],
];

/// The children of a module from the bottom up: each imports only those before it.
pub(super) const ORDERS: &[(&str, &[&str])] = &[
    (
        "cuzk_core",
        &[
            "config", "error", "panics", "circuits", "pipeline", "job", "engine",
        ],
    ),
    (
        "cuzk_core::engine",
        &[
            "signal",
            "jobs",
            "assets",
            "attempt",
            "dispatch",
            "fleet",
            "route",
            "compute",
            "devices",
            "reverify",
            "core",
            "workers",
            "submission",
            "status",
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
            "error",
            "once_map",
            "query_lengths",
            "circuit",
            "params",
            "memory",
            "evaluate",
            "backend",
            "verify",
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

pub(super) const CIRCLES: &[Circle] = &[
    Circle {
        of: "cuzk_kernels",
        modules: &[
            "affine",
            "arithmetic",
            "context",
            "error",
            "ifma",
            "isa",
            "msm",
            "ntt",
            "poseidon",
        ],
        reason: "Errors and instructions name types of the kernels that use them. To be \
                 cut: what is shared can move below the kernels.",
    },
    Circle {
        of: "cuzk_kernels::msm",
        modules: &[
            "buckets",
            "multiples",
            "part",
            "selected",
            "window",
            "workspace",
        ],
        reason: "An MSM's pieces share small types. To be cut: they can have a file of their own.",
    },
    Circle {
        of: "cuzk_kernels::ntt",
        modules: &["pass", "twiddles"],
        reason: "Twiddles are made for a direction, which the passes define. To be cut: the direction can move down.",
    },
    Circle {
        of: "cuzk_pce",
        modules: &["density", "fingerprint", "r1cs"],
        reason: "Plain matrices have a fingerprint and densities, which are computed from them. \
                 To be cut: both can be functions of the matrices.",
    },
    Circle {
        of: "cuzk_pce",
        modules: &["disk", "program"],
        reason: "The format of files names the parts of a program. To be cut: what is common to \
                 all files can move down.",
    },
    Circle {
        of: "cuzk_pce::program",
        modules: &["compile", "drift", "folded", "run", "sequence", "tables"],
        reason: "The grammar's parts are defined where each is made. To be cut: their types can \
                 have a file of their own.",
    },
    Circle {
        of: "cuzk_pce::witness",
        modules: &["builder", "packed"],
        reason: "A builder makes a packed witness, whose queries are made by a builder.",
    },
];
