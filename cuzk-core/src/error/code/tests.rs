use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cuzk_groth16::apart::NoThreads;
use cuzk_groth16::params::GenerateError;
use cuzk_pce::disk::DiskError;
use cuzk_scheduler::admission;

use super::*;

fn params(error: ParamsError) -> Error {
    error.into()
}

fn journal(error: JournalError) -> Error {
    error.into()
}

fn path() -> PathBuf {
    "folder/name".into()
}

fn no_space() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

/// The error of multiples that did not fit on the disk.
fn full_params() -> ParamsError {
    ParamsError::Io {
        path: path(),
        source: no_space(),
    }
}

/// The error of a compiled circuit that did not fit on the disk.
fn full_circuit() -> DiskError {
    DiskError {
        path: path(),
        fault: DiskFault::Io(no_space()),
    }
}

/// The error of a process that may open no more files.
fn too_many_files() -> io::Error {
    io::Error::from_raw_os_error(24)
}

/// The error of parameters that such a process opens.
fn too_many_files_of_params() -> ParamsError {
    ParamsError::Io {
        path: path(),
        source: too_many_files(),
    }
}

/// The error of a compiled circuit that such a process opens.
fn too_many_files_of_circuit() -> DiskError {
    DiskError {
        path: path(),
        fault: DiskFault::Io(too_many_files()),
    }
}

/// The error of a call that waits on a thread of its own, on such a system.
fn no_thread_apart() -> NoThreads {
    NoThreads {
        threads: 1,
        source: io::ErrorKind::WouldBlock.into(),
    }
}

/// The error of a system that has no thread left.
fn no_thread() -> rayon::ThreadPoolBuildError {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(1);
    let refused = |_| Err(io::ErrorKind::WouldBlock.into());
    builder.spawn_handler(refused).build().unwrap_err()
}

/// An error of each code that an engine can return.
fn samples() -> Vec<(ErrorCode, Error)> {
    let partition = 3;
    let problem = || "why".to_owned();
    let backend = |culprit| Error::Backend {
        partition,
        backend: "cpu",
        problem: problem(),
        culprit,
    };
    let id = || "job".to_owned();
    let io = |source| JournalError::Io {
        path: path(),
        action: "write",
        source: Arc::new(source),
    };
    let over = admission::OverBudget {
        needed_bytes: 2,
        available_bytes: 1,
    };
    vec![
        (
            Failed,
            cuzk_filecoin::Error::synthesis("witness", &problem()).into(),
        ),
        (Failed, Error::OwnThread),
        (
            Output,
            params(ParamsError::Generate {
                path: path(),
                source: GenerateError::Write(no_space()),
            }),
        ),
        (Output, params(full_params())),
        (Output, Error::Groth16(full_circuit().into())),
        (
            Output,
            Error::Srs(SrsError::Io {
                path: path(),
                source: no_space(),
            }),
        ),
        (
            Argument,
            journal(JournalError::InvalidInput {
                field: "id",
                expected: "1 to 64 bytes".into(),
                got: "0".into(),
            }),
        ),
        (File, params(ParamsError::NoFolder { path: path() })),
        (File, journal(io(io::ErrorKind::NotFound.into()))),
        (
            Configuration,
            Error::Config(ConfigError::NotUtf8 {
                path: path(),
                line: 1,
            }),
        ),
        (Request, Error::request("proof_kind", "missing", "name it")),
        (
            ParametersMissing,
            params(ParamsError::Missing { path: path() }),
        ),
        (
            ParametersUnusable,
            params(ParamsError::Empty { path: path() }),
        ),
        (ParametersUnusable, backend(Culprit::Input)),
        (Threads, Error::from(no_thread_apart())),
        (
            Threads,
            Error::Config(ConfigError::Threads {
                threads: 1,
                source: no_thread(),
            }),
        ),
        (
            Unsatisfied,
            Error::Unsatisfied {
                partition,
                row: 7,
                part: Some("a path".to_owned()),
            },
        ),
        (OverBudget, Error::OverBudget(over)),
        (
            NoMemory,
            Error::NoMemory(cuzk_memory::NoMemory { bytes: 7 }),
        ),
        (
            File,
            Error::Groth16(cuzk_groth16::Error::CircuitFile(DiskError {
                path: path(),
                fault: DiskFault::Io(io::ErrorKind::NotFound.into()),
            })),
        ),
        (
            File,
            Error::Groth16(cuzk_groth16::Error::CircuitFile(DiskError {
                path: path(),
                fault: DiskFault::Io(io::ErrorKind::PermissionDenied.into()),
            })),
        ),
        (
            NoMemory,
            params(ParamsError::Io {
                path: path(),
                source: io::ErrorKind::OutOfMemory.into(),
            }),
        ),
        (OpenFiles, params(too_many_files_of_params())),
        (
            OpenFiles,
            Error::Groth16(too_many_files_of_circuit().into()),
        ),
        (OpenFiles, journal(io(too_many_files()))),
        (
            CircuitFile,
            Error::Groth16(cuzk_groth16::Error::OtherCircuit {
                path: path(),
                expected: "c".into(),
                got: "d".into(),
            }),
        ),
        (Device, backend(Culprit::Device)),
        (
            Rejected,
            Error::Rejected {
                partition,
                problem: problem(),
            },
        ),
        (Rejected, Error::Aggregate { problem: problem() }),
        (
            ParametersMissing,
            Error::Srs(SrsError::Io {
                path: path(),
                source: io::ErrorKind::NotFound.into(),
            }),
        ),
        (
            Stalled,
            Error::Stalled {
                partition,
                after_s: 9,
            },
        ),
        (Start, Error::Start { problem: problem() }),
        (Busy, Error::Busy { capacity: 1 }),
        (
            Busy,
            journal(JournalError::Full {
                what: "bytes of requests",
                used: 9,
                more: 2,
                max: 10,
            }),
        ),
        (
            TooManyPartitions,
            Error::TooManyPartitions {
                partitions: 2,
                capacity: 1,
            },
        ),
        (
            JournalInUse,
            journal(JournalError::InUse {
                path: path(),
                holder_pid: Some(7),
            }),
        ),
        (
            JournalUnusable,
            journal(JournalError::Damaged {
                path: path(),
                what: problem(),
            }),
        ),
        (
            JournalUnusable,
            journal(JournalError::DamagedJob {
                id: id(),
                what: "request",
            }),
        ),
        (
            JournalFailing,
            journal(JournalError::Store {
                path: path(),
                what: problem(),
            }),
        ),
        (JournalFailing, journal(io(no_space()))),
        (Conflict, Error::Conflict { id: id() }),
        (Conflict, journal(JournalError::OtherInput { id: id() })),
        (
            Conflict,
            journal(JournalError::Ended {
                id: id(),
                end: "done",
            }),
        ),
        (Argument, journal(JournalError::Unknown { id: id() })),
        (
            Late,
            Error::TooLate {
                deadline_ms: 1,
                estimate_ms: 2,
            },
        ),
        (Late, Error::DeadlinePassed),
        (Ended, Error::ShuttingDown),
        (Ended, Error::Cancelled),
        (Ended, Error::Stopped),
        (
            InUse,
            Error::InUse {
                circuit: "c".into(),
                partitions: 1,
                makes_multiples: false,
            },
        ),
        (
            Internal,
            Error::Internal {
                stage: "device",
                problem: problem(),
            },
        ),
        (
            Multiples,
            params(ParamsError::Multiples {
                path: path(),
                problem: problem(),
            }),
        ),
    ]
}

/// The codes that only commands have. `cuzk/tests/cli/codes.rs` has a command for each.
const OF_COMMANDS: [ErrorCode; 5] = [Signal, Daemon, Fetch, Doctor, NotValid];

#[test]
fn each_code_has_an_error_here_or_is_of_commands() {
    let samples = samples();
    for code in ErrorCode::ALL {
        let is_here = samples.iter().any(|(of, _)| *of == code);
        assert!(is_here != OF_COMMANDS.contains(&code), "{code}");
    }
}

/// Returns the name of an error's kind. A kind that is new does not compile before it is here.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::Filecoin(_) => "Filecoin",
        Error::Config(_) => "Config",
        Error::Groth16(_) => "Groth16",
        Error::Params(_) => "Params",
        Error::OverBudget(_) => "OverBudget",
        Error::NoMemory(_) => "NoMemory",
        Error::Unsatisfied { .. } => "Unsatisfied",
        Error::Backend { .. } => "Backend",
        Error::Rejected { .. } => "Rejected",
        Error::Aggregate { .. } => "Aggregate",
        Error::Srs(_) => "Srs",
        Error::Start { .. } => "Start",
        Error::Busy { .. } => "Busy",
        Error::TooManyPartitions { .. } => "TooManyPartitions",
        Error::Journal(_) => "Journal",
        Error::Conflict { .. } => "Conflict",
        Error::TooLate { .. } => "TooLate",
        Error::DeadlinePassed => "DeadlinePassed",
        Error::Stopped => "Stopped",
        Error::Cancelled => "Cancelled",
        Error::ShuttingDown => "ShuttingDown",
        Error::Stalled { .. } => "Stalled",
        Error::OwnThread => "OwnThread",
        Error::InUse { .. } => "InUse",
        Error::Internal { .. } => "Internal",
    }
}

/// The kinds of errors, as the function above has them.
const KINDS: usize = 25;

#[test]
fn each_kind_of_error_has_a_sample() {
    let samples = samples();
    let kinds: BTreeSet<_> = samples.iter().map(|(_, error)| kind(error)).collect();
    assert_eq!(kinds.len(), KINDS, "{kinds:?}");
}

#[test]
fn codes_are_numbered_in_order_and_written_with_four_digits() {
    for (code, number) in ErrorCode::ALL.into_iter().zip(1..) {
        assert_eq!(code.number(), number);
        assert!((1..=2).contains(&code.exit_code()), "{code}");
    }
    assert_eq!(ErrorCode::ParametersMissing.to_string(), "CUZK-0007");
}

/// A user can mend bad input by changing a file, a request or the configuration. Too little
/// memory, too few threads or files and a full disk can be mended so, too, and are no bad input.
#[test]
fn each_error_has_its_code_and_the_exit_code_of_its_kind() {
    for (code, error) in samples() {
        assert_eq!(ErrorCode::of(&error), code, "{error}");
        let of_the_machine = [OverBudget, NoMemory, Threads, Output, OpenFiles];
        let is_input = error.is_input() && !of_the_machine.contains(&code);
        let expected = match code {
            // The backend's error leaves open which file is wrong.
            ParametersUnusable => 2,
            _ => 1 + u8::from(is_input),
        };
        assert_eq!(code.exit_code(), expected, "{error}");
    }
}

/// A limit of processes is told as that, and not as a problem of a folder.
#[test]
fn a_lack_of_threads_names_the_limit() {
    let of_configuration = |threads| {
        let source = no_thread();
        Error::Config(ConfigError::Threads { threads, source })
    };
    let one = [Error::from(no_thread_apart()), of_configuration(1)];
    for told in one.map(|error| error.to_string()) {
        assert!(told.starts_with("cannot start 1 thread: "), "{told}");
        assert!(told.contains("ulimit -u"), "{told}");
    }
    let told = of_configuration(2).to_string();
    assert!(told.starts_with("cannot start 2 threads: "), "{told}");
}

/// Returns what an error of a code must name: a file, a key, a partition, a job. One of several is
/// enough.
fn places(code: ErrorCode) -> &'static [&'static str] {
    match code {
        Argument => &["id", "job"],
        Failed => &["witness", "thread"],
        File | Output | OpenFiles | ParametersMissing | JournalInUse | Multiples => {
            &["folder/name"]
        }
        // One job of a journal can be damaged.
        JournalUnusable => &["folder/name", "job \"job\""],
        // The backend that reads parameters names the partition.
        ParametersUnusable => &["folder/name", "partition 3"],
        Configuration => &["folder/name, line 1"],
        Request => &["proof_kind"],
        Unsatisfied | Device | Stalled => &["partition 3"],
        Rejected => &["partition 3", "aggregate"],
        OverBudget => &["[memory] total_budget"],
        NoMemory => &["[memory] total_budget", "folder/name"],
        Threads => &["thread"],
        CircuitFile => &["compiled circuit folder/name"],
        Start => &["engine"],
        Busy => &["queue", "journal"],
        TooManyPartitions => &["queue"],
        JournalFailing => &["journal folder/name"],
        Conflict => &["job"],
        Late => &["deadline"],
        Ended => &["job"],
        InUse => &["circuit c"],
        Internal => &["device"],
        Signal | Daemon | Fetch | Doctor | NotValid => &[],
    }
}

/// A printed error has what is wrong and where, then what to do, then the code:
/// `PLACE: PROBLEM; ADVICE [CODE]`. The journal's and the parameters' crates do not know what an
/// operator can do, so some of the advice comes from the code.
#[test]
fn each_error_says_what_where_and_what_to_do() {
    for (code, error) in samples() {
        let (alone, told) = (error.to_string(), code.after(&error));
        let is_named = places(code).iter().any(|place| alone.contains(place));
        assert!(is_named, "{code}: {alone}");
        assert!(told.starts_with(&alone), "{code}: {told}");
        let has_advice = told.contains("; ") || told.contains("expected ");
        assert!(has_advice, "{code}: {told}");
        assert!(told.ends_with(&format!(" [{code}]")), "{code}: {told}");
    }
}

/// Its own text knows more of the case than the remedy of the code.
#[test]
fn a_circuits_file_that_cannot_be_used_is_told_with_one_advice() {
    let missing = DiskFault::Io(io::ErrorKind::NotFound.into());
    for fault in [missing, DiskFault::Field, DiskFault::Checksum] {
        let path = path();
        let error = Error::Groth16(DiskError { path, fault }.into());
        let told = ErrorCode::of(&error).after(&error);
        assert_eq!(told.matches("; ").count(), 1, "{told}");
    }
}

#[test]
fn a_code_after_a_message_is_taken_off_again() {
    for code in ErrorCode::ALL {
        let told = code.after("x; do y [z]");
        assert_eq!(ErrorCode::split(&told), ("x; do y [z]", Some(code)));
    }
    for other in ["", "x", "x [CUZK-0000]", "x [CUZK-0001] ", "[CUZK-0001]"] {
        assert_eq!(ErrorCode::split(other), (other, None));
    }
}
