//! The stable codes of errors, and the exit code of each.
//!
//! Not the messages, which are the errors' own. The invariants:
//!
//! * A number is never given to another error.
//! * Every error that a user sees has one of these codes.
//! * Every error that a user sees says what to do.
//! * `docs/troubleshooting.md` has a row for each code.

mod remedy;

use std::{fmt, io};

use cuzk_groth16::Culprit;
use cuzk_groth16::aggregate::SrsError;
use cuzk_groth16::params::{GenerateError, ParamsError};
use cuzk_journal::JournalError;
use cuzk_pce::disk::DiskFault;

use super::Error;
use crate::config::ConfigError;

/// The exit code of a failure on good input.
const FAILED: u8 = 1;

/// The exit code of bad input: an argument, a file, a request or the configuration.
const INPUT: u8 = 2;

/// The code of an error. It stays the same, whatever the message becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
#[non_exhaustive]
pub enum ErrorCode {
    /// An argument cannot be used.
    Argument = 1,
    /// A command failed on good input, for a reason that has no code of its own.
    Failed = 2,
    /// A file that was named cannot be read, or nothing can be written there.
    File = 3,
    /// A result could not be written: the disk is full or fails.
    Output = 4,
    /// The configuration does not resolve.
    Configuration = 5,
    /// A request cannot be proved.
    Request = 6,
    /// Groth16 parameters are missing.
    ParametersMissing = 7,
    /// Groth16 parameters are damaged, or those of another circuit.
    ParametersUnusable = 8,
    /// The statement is false.
    Unsatisfied = 9,
    /// The memory of the configuration is too small.
    OverBudget = 10,
    /// The system gave no memory.
    NoMemory = 11,
    /// The system gave no thread.
    Threads = 12,
    /// A compiled circuit's file cannot be used.
    CircuitFile = 13,
    /// A device failed to prove.
    Device = 14,
    /// A proof did not verify.
    Rejected = 15,
    /// A device did not answer.
    Stalled = 16,
    /// The engine or the daemon cannot start.
    Start = 17,
    /// The queue has no room.
    Busy = 18,
    /// The queue can never hold the job.
    TooManyPartitions = 19,
    /// Another engine has the journal.
    JournalInUse = 20,
    /// The journal is damaged, or no journal.
    JournalUnusable = 21,
    /// The journal cannot be written, or is full.
    JournalFailing = 22,
    /// An id stands for another request.
    Conflict = 23,
    /// The proof would come too late.
    Late = 24,
    /// The job was ended.
    Ended = 25,
    /// A circuit is in use.
    InUse = 26,
    /// A defect of cuzk.
    Internal = 27,
    /// A signal ended the command.
    Signal = 28,
    /// A daemon does not answer, or refuses the call.
    Daemon = 29,
    /// Parameters could not be fetched.
    Fetch = 30,
    /// Multiples cannot be used or made.
    Multiples = 31,
    /// `cuzk doctor` found errors.
    Doctor = 32,
    /// A proof is not valid.
    NotValid = 33,
    /// The system gave no file descriptor.
    OpenFiles = 34,
}

use ErrorCode::{
    Argument, Busy, CircuitFile, Configuration, Conflict, Daemon, Device, Doctor, Ended, Failed,
    Fetch, File, InUse, Internal, JournalFailing, JournalInUse, JournalUnusable, Late, Multiples,
    NoMemory, NotValid, OpenFiles, Output, OverBudget, ParametersMissing, ParametersUnusable,
    Rejected, Request, Signal, Stalled, Start, Threads, TooManyPartitions, Unsatisfied,
};

impl ErrorCode {
    /// All codes, by number.
    pub const ALL: [Self; 34] = [
        Argument,
        Failed,
        File,
        Output,
        Configuration,
        Request,
        ParametersMissing,
        ParametersUnusable,
        Unsatisfied,
        OverBudget,
        NoMemory,
        Threads,
        CircuitFile,
        Device,
        Rejected,
        Stalled,
        Start,
        Busy,
        TooManyPartitions,
        JournalInUse,
        JournalUnusable,
        JournalFailing,
        Conflict,
        Late,
        Ended,
        InUse,
        Internal,
        Signal,
        Daemon,
        Fetch,
        Multiples,
        Doctor,
        NotValid,
        OpenFiles,
    ];

    /// Returns the number of the code, from 1.
    #[must_use]
    pub fn number(self) -> u16 {
        self as u16
    }

    /// Returns the exit code of a command that ends with this error: 1 for a failure on
    /// good input, 2 for bad input. A signal's is 128 plus its number instead.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Argument | File | Configuration | Request | ParametersMissing | ParametersUnusable
            | Unsatisfied | CircuitFile | TooManyPartitions | JournalInUse | JournalUnusable
            | Conflict | Multiples => INPUT,
            Failed | Output | OverBudget | NoMemory | Threads | Device | Rejected | Stalled
            | Start | Busy | JournalFailing | Late | Ended | InUse | Internal | Signal | Daemon
            | Fetch | Doctor | NotValid | OpenFiles => FAILED,
        }
    }

    /// Returns what a user can do about an error of this code, as a clause without a full stop.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        remedy::of(self)
    }

    /// Returns a message that says what to do. The remedy of the code follows a message that
    /// does not.
    #[must_use]
    pub fn complete(self, message: impl Into<String>) -> String {
        let message = message.into();
        match remedy::has_advice(&message) {
            true => message,
            false => format!("{message}; {}", self.remedy()),
        }
    }

    /// Returns a message that says what to do, with the code after it: `MESSAGE [CUZK-0007]`.
    #[must_use]
    pub fn after(self, message: impl fmt::Display) -> String {
        let message = self.complete(message.to_string());
        format!("{message} [{self}]")
    }

    /// Takes the code off the end of a message, if there is one.
    #[must_use]
    pub fn split(message: &str) -> (&str, Option<Self>) {
        let found = Self::ALL.into_iter().find_map(|code| {
            let end = format!(" [{code}]");
            Some((message.strip_suffix(&end)?, code))
        });
        match found {
            Some((message, code)) => (message, Some(code)),
            None => (message, None),
        }
    }

    /// Returns the code of an error of the system about a file or a socket. A disk that is full or
    /// fails is no bad input: another path on it would do no better. Nor are too many open files.
    #[must_use]
    pub fn of_file(error: &io::Error) -> Self {
        use io::ErrorKind::{OutOfMemory, QuotaExceeded, StorageFull};
        /// Linux's numbers of errors that have no kind: an input or output error, and too many
        /// open files of the system or of the process.
        const EIO: i32 = 5;
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        match error.kind() {
            StorageFull | QuotaExceeded => Output,
            // Of a file that is mapped.
            OutOfMemory => NoMemory,
            _ => match error.raw_os_error() {
                Some(EIO) => Output,
                Some(ENFILE | EMFILE) => OpenFiles,
                _ => File,
            },
        }
    }

    /// Returns the code of an error.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        match error {
            Error::Filecoin(error) => of_filecoin(error),
            Error::Config(ConfigError::Threads { .. }) => Threads,
            Error::Config(_) => Configuration,
            Error::Groth16(error) => of_groth16(error),
            Error::Params(error) => of_params(error),
            Error::OverBudget(_) => OverBudget,
            Error::NoMemory(_) => NoMemory,
            Error::Unsatisfied { .. } => Unsatisfied,
            Error::Backend { culprit, .. } if *culprit == Culprit::Input => ParametersUnusable,
            Error::Backend { .. } => Device,
            Error::Rejected { .. } | Error::Aggregate { .. } => Rejected,
            Error::Srs(error) if error.is_missing() => ParametersMissing,
            Error::Srs(SrsError::Io { source, .. }) => Self::of_file(source),
            Error::Srs(_) => ParametersUnusable,
            Error::Start { .. } => Start,
            Error::Busy { .. } => Busy,
            Error::TooManyPartitions { .. } => TooManyPartitions,
            Error::Journal(error) => of_journal(error),
            Error::Conflict { .. } => Conflict,
            Error::TooLate { .. } | Error::DeadlinePassed => Late,
            Error::Stopped | Error::Cancelled | Error::ShuttingDown => Ended,
            Error::Stalled { .. } => Stalled,
            Error::OwnThread => Failed,
            Error::InUse { .. } => InUse,
            Error::Internal { .. } => Internal,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUZK-{:04}", self.number())
    }
}

fn of_filecoin(error: &cuzk_filecoin::Error) -> ErrorCode {
    match error {
        cuzk_filecoin::Error::InvalidRequest { .. } => Request,
        cuzk_filecoin::Error::NoMemory(_) => NoMemory,
        cuzk_filecoin::Error::Stopped => Ended,
        cuzk_filecoin::Error::Io { source, .. } => ErrorCode::of_file(source),
        _ => Failed,
    }
}

fn of_groth16(error: &cuzk_groth16::Error) -> ErrorCode {
    use io::ErrorKind::{NotFound, PermissionDenied};
    match error {
        cuzk_groth16::Error::CircuitFile(error) => match &error.fault {
            DiskFault::Io(error) => match ErrorCode::of_file(error) {
                code @ (Output | NoMemory | OpenFiles) => code,
                _ if matches!(error.kind(), NotFound | PermissionDenied) => File,
                _ => CircuitFile,
            },
            _ => CircuitFile,
        },
        cuzk_groth16::Error::OtherCircuit { .. } => CircuitFile,
        cuzk_groth16::Error::Memory(_) => NoMemory,
        cuzk_groth16::Error::Stopped => Ended,
        cuzk_groth16::Error::Io { source, .. } => ErrorCode::of_file(source),
        _ => Failed,
    }
}

fn of_params(error: &ParamsError) -> ErrorCode {
    match error {
        ParamsError::Missing { .. } => ParametersMissing,
        ParamsError::Io { source, .. } => ErrorCode::of_file(source),
        ParamsError::NoFolder { .. } => File,
        ParamsError::Threads { .. } => Threads,
        ParamsError::Multiples { .. } | ParamsError::NoMultiples { .. } => Multiples,
        ParamsError::Stopped => Ended,
        ParamsError::Generate {
            source: GenerateError::Write(_),
            ..
        } => Output,
        ParamsError::Generate { .. } => Failed,
        _ => ParametersUnusable,
    }
}

fn of_journal(error: &JournalError) -> ErrorCode {
    match error {
        JournalError::InUse { .. } => JournalInUse,
        JournalError::Damaged { .. }
        | JournalError::DamagedJob { .. }
        | JournalError::Foreign { .. }
        | JournalError::NewerFormat { .. } => JournalUnusable,
        JournalError::OtherInput { .. } | JournalError::Ended { .. } => Conflict,
        JournalError::InvalidInput { .. } | JournalError::Unknown { .. } => Argument,
        JournalError::Io { source, .. } if ErrorCode::of_file(source) == OpenFiles => OpenFiles,
        JournalError::Full { .. } => Busy,
        error if error.is_input() => File,
        _ => JournalFailing,
    }
}

#[cfg(test)]
mod tests;
