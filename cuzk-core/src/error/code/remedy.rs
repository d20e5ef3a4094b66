//! The remedies of the codes: clauses that say what a user can do.
//!
//! Not the remedies that errors have in their own texts, which know more of the case. The
//! invariant: `docs/troubleshooting.md` has each of these in the row of its code.

use super::ErrorCode::{
    self, Argument, Busy, CircuitFile, Configuration, Conflict, Daemon, Device, Doctor, Ended,
    Failed, Fetch, File, InUse, Internal, JournalFailing, JournalInUse, JournalUnusable, Late,
    Multiples, NoMemory, NotValid, OpenFiles, Output, OverBudget, ParametersMissing,
    ParametersUnusable, Rejected, Request, Signal, Stalled, Start, Threads, TooManyPartitions,
    Unsatisfied,
};

/// The remedies, by number.
const REMEDIES: [(ErrorCode, &str); 34] = [
    (Argument, "`cuzk COMMAND --help` lists all arguments"),
    (
        Failed,
        "if the input is right, report it with the output of `cuzk support-bundle`",
    ),
    (File, "check the path and its permissions"),
    (Output, "make room, or name another place"),
    (Configuration, "`cuzk config check FILE` names each line"),
    (Request, "make the request again, or send it unaltered"),
    (ParametersMissing, "run `cuzk params fetch`"),
    (
        ParametersUnusable,
        "delete the wrong file, and fetch it again",
    ),
    (Unsatisfied, "make the vanilla proof again"),
    (
        OverBudget,
        "raise `[memory] total_budget`, or use a machine with more memory",
    ),
    (
        NoMemory,
        "lower `[memory] total_budget`, or end other programs",
    ),
    (
        Threads,
        "raise the limit of processes (`ulimit -u`, `TasksMax=`)",
    ),
    (CircuitFile, "delete the file"),
    (
        Device,
        "look at the log before this line, and at `nvidia-smi`",
    ),
    (
        Rejected,
        "check the parameters first (`cuzk params verify`)",
    ),
    (Stalled, "look at the device"),
    (Start, "run `cuzk doctor`"),
    (Busy, "submit again when a job has ended"),
    (TooManyPartitions, "raise `[jobs] queued_partitions`"),
    (JournalInUse, "stop that engine, or name another journal"),
    (
        JournalUnusable,
        "put back a good copy, or move the file away",
    ),
    (JournalFailing, "free room on its disk, or replace the disk"),
    (Conflict, "send the new request under a new id"),
    (
        Late,
        "give the job more time or a higher priority, or prove it elsewhere",
    ),
    (Ended, "submit the request again"),
    (
        InUse,
        "evict it when its partitions have ended and its multiples are made",
    ),
    (
        Internal,
        "report it with the output of `cuzk support-bundle`",
    ),
    (Signal, "give the command again"),
    (
        Daemon,
        "start it with `cuzk serve`, or check `--address` and the certificates",
    ),
    (Fetch, "name another source with `--from`"),
    (Multiples, "run `cuzk params prepare`"),
    (Doctor, "each of its lines says what to do"),
    (NotValid, "check that proof and request belong together"),
    (
        OpenFiles,
        "raise the limit of open files (`ulimit -n`, `LimitNOFILE=`)",
    ),
];

/// The parts of a text that say what to do: a second clause, or what was expected.
const ADVICE: [&str; 2] = ["; ", "expected "];

/// Returns true if a message says what to do. An "unexpected end" does not.
pub(super) fn has_advice(message: &str) -> bool {
    ADVICE.iter().any(|part| {
        let mut found = message.match_indices(part);
        found.any(|(at, _)| !message[..at].ends_with("un"))
    })
}

/// Returns the remedy of a code.
pub(super) fn of(code: ErrorCode) -> &'static str {
    let row = REMEDIES.iter().find(|(of, _)| *of == code);
    row.map_or("", |(_, remedy)| remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_a_remedy() {
        let codes = REMEDIES.map(|(code, _)| code);
        assert_eq!(codes, ErrorCode::ALL);
        for code in codes {
            assert!(of(code).len() > 5, "{code}");
        }
    }

    #[test]
    fn advice_is_a_second_clause_or_what_was_expected() {
        for with in ["a: b; do c", "a: expected 1, got 2"] {
            assert!(has_advice(with), "{with}");
        }
        for without in ["", "a: b", "a;b", "unexpected", "unexpected end"] {
            assert!(!has_advice(without), "{without}");
        }
    }
}
