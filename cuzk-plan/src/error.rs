//! Errors of a description, a load, or of both together.

use crate::units::in_gib;
use cuzk_scheduler::admission::OverBudget;

/// An error of a description, a load, or of both together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The file is not TOML, or a key is unknown, missing or of the wrong type.
    #[error("{file}: {problem}")]
    Syntax {
        /// The name of the file.
        file: String,
        /// The problem, with the line and the key.
        problem: String,
    },
    /// A value is outside of its range.
    #[error("{file}: {key}: expected {expected}, got {got}")]
    Value {
        /// The name of the file.
        file: String,
        /// The key, with the names of its tables.
        key: String,
        /// The permitted values.
        expected: String,
        /// The value in the file.
        got: String,
    },
    /// The work needs more memory than the machine has.
    #[error(
        "{kind}: a partition needs {needed_gib:.1} GiB with its circuit and parameters, and \
         the budget is {budget_gib:.1} GiB; use a machine with more memory"
    )]
    Memory {
        /// The kind of the work.
        kind: String,
        /// The needed memory, in GiB.
        needed_gib: f64,
        /// The engine's budget, in GiB.
        budget_gib: f64,
    },
    /// The machine's file has no costs of a kind in the load.
    #[error("{machine}: costs.{kind} is missing; measure it with `cuzk plan calibrate`")]
    NoCosts {
        /// The name of the machine.
        machine: String,
        /// The kind without costs.
        kind: String,
    },
}

impl PlanError {
    /// Returns the error of a kind whose partition needs too much memory.
    pub(crate) fn memory(kind: &str, over: OverBudget, budget_gib: f64) -> Self {
        Self::Memory {
            kind: kind.to_owned(),
            needed_gib: in_gib(over.needed_bytes),
            budget_gib,
        }
    }
}
