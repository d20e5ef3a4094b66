//! GPUs as NVIDIA's driver lists them, through its program `nvidia-smi`.
//!
//! No device is opened, and no memory of a device is taken. The invariant: without the
//! program there are no GPUs here, and that is said apart from an error of the driver.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The driver's program.
const PROGRAM: &str = "nvidia-smi";

/// The longest time that the program may take. It takes seconds on a machine with many GPUs
/// that nobody uses, and hangs with a driver that hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two looks at the program.
const TICK: Duration = Duration::from_millis(10);

/// The columns that are asked for.
const QUERY: &str = "--query-gpu=index,name,memory.total,memory.used,compute_cap,driver_version";

/// The columns that are asked for of a program.
const USERS_QUERY: &str = "--query-compute-apps=pid,process_name,used_memory";

const FORMAT: &str = "--format=csv,noheader,nounits";

/// A GPU, as the driver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gpu {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) memory_mib: u64,
    pub(crate) used_mib: u64,
    pub(crate) compute: String,
    pub(crate) driver: String,
}

/// A program that uses a GPU, as the driver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) process: String,
    /// The path or the name of the program.
    pub(crate) program: String,
    /// Its memory on the GPU; unknown in some containers.
    pub(crate) memory_mib: Option<u64>,
}

/// The answer of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// There is no such program, so most likely no driver.
    NoProgram,
    /// The driver failed.
    Failed(String),
    Gpus(Vec<Gpu>),
}

/// Asks the driver.
pub(crate) fn ask() -> Answer {
    let (status, text) = match run(PROGRAM, &[QUERY, FORMAT], PATIENCE) {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            let seconds = PATIENCE.as_secs();
            return Answer::Failed(format!("{PROGRAM} did not end in {seconds} s"));
        }
        Err(error) if is_absent(&error) => return Answer::NoProgram,
        Err(error) => return Answer::Failed(error.to_string()),
    };
    if !status.success() {
        let problem = text.lines().next().unwrap_or("no message").to_owned();
        return Answer::Failed(problem);
    }
    Answer::Gpus(parse(&text))
}

/// Returns the programs that compute on a GPU. A driver that does not answer names none.
pub(crate) fn users(index: u32) -> Vec<User> {
    let arguments = [&format!("--id={index}"), USERS_QUERY, FORMAT];
    match run(PROGRAM, &arguments, PATIENCE) {
        Ok(Some((status, text))) if status.success() => parse_users(&text),
        _ => Vec::new(),
    }
}

/// Returns true if the error says that there is no such program. A folder of `PATH` that may
/// not be searched makes another error of it.
fn is_absent(error: &io::Error) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match error.kind() {
        io::ErrorKind::NotFound => true,
        io::ErrorKind::PermissionDenied => !is_in(&path),
        _ => false,
    }
}

/// Returns true if a folder of `path` has the program.
fn is_in(path: &OsStr) -> bool {
    std::env::split_paths(path).any(|folder| folder.join(PROGRAM).is_file())
}

/// Runs a program. Returns how it ended and what it printed; nothing if it did not end in
/// time. It is killed then, and not waited for: a call into a driver that hangs does not end.
fn run(
    program: &str,
    arguments: &[&str],
    patience: Duration,
) -> io::Result<Option<(ExitStatus, String)>> {
    let started = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (send, receive) = mpsc::channel();
    let stdout = child.stdout.take();
    let reader = thread::Builder::new().name("cuzk-nvidia-smi".to_owned());
    // It ends with the program's output. Nobody waits for it.
    let reads = reader.spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut bytes));
        let _ = send.send(read.map(|_| String::from_utf8_lossy(&bytes).into_owned()));
    });
    if let Err(error) = reads {
        let _ = child.kill();
        return Err(error);
    }
    let left = || patience.saturating_sub(started.elapsed());
    let Ok(text) = receive.recv_timeout(left()) else {
        let _ = child.kill();
        return Ok(None);
    };
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some((status, text?)));
        }
        if left().is_zero() {
            let _ = child.kill();
            return Ok(None);
        }
        thread::sleep(TICK);
    }
}

/// Reads the lines of the answer. The name of a program may have commas.
fn parse_users(text: &str) -> Vec<User> {
    let user = |line: &str| {
        let (process, rest) = line.split_once(',')?;
        let (program, memory) = rest.rsplit_once(',')?;
        let process = process.trim();
        process.parse::<u32>().ok()?;
        Some(User {
            process: process.to_owned(),
            program: program.trim().to_owned(),
            memory_mib: memory.trim().parse().ok(),
        })
    };
    text.lines().filter_map(user).collect()
}

/// Reads the lines of the answer. A line of another form is left out.
fn parse(text: &str) -> Vec<Gpu> {
    let gpu = |line: &str| {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        let [index, name, memory, used, compute, driver] = fields[..] else {
            return None;
        };
        Some(Gpu {
            index: index.parse().ok()?,
            name: name.to_owned(),
            memory_mib: memory.parse().ok()?,
            used_mib: used.parse().ok()?,
            compute: compute.to_owned(),
            driver: driver.to_owned(),
        })
    };
    text.lines().filter_map(gpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_left() {
        let run = |script: &str, patience| run("sh", &["-c", script], patience).unwrap();
        let long = Duration::from_secs(600);
        let (status, text) = run("echo a; exit 3", long).unwrap();
        assert_eq!((status.code(), text.as_str()), (Some(3), "a\n"));
        for script in ["exec sleep 600", "exec >&-; exec sleep 600"] {
            assert_eq!(run(script, Duration::from_millis(50)), None);
        }
        let none = super::run("/none/x", &[], long).unwrap_err();
        assert!(is_absent(&none));
    }

    #[test]
    fn a_program_is_looked_for_in_each_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = std::env::join_paths([folder.path().join("no"), folder.path().into()]).unwrap();
        assert!(!is_in(&path));
        std::fs::write(folder.path().join(PROGRAM), "").unwrap();
        assert!(is_in(&path));
    }

    #[test]
    fn the_drivers_table_is_read() {
        let text = "0, NVIDIA H100 80GB HBM3, 81559, 12, 9.0, 550.54.15\nno line\n\
                    1, GPU, [N/A], 0, 9.0, 1\n";
        let gpus = parse(text);
        let expected = Gpu {
            index: 0,
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            memory_mib: 81_559,
            used_mib: 12,
            compute: "9.0".to_owned(),
            driver: "550.54.15".to_owned(),
        };
        assert_eq!(gpus, [expected]);
    }

    #[test]
    fn the_programs_of_a_gpu_are_read() {
        let text = "4711, /opt/a, b/miner, 9000\n12, /usr/bin/cuzk, [N/A]\nno line\n";
        let user = |process: &str, program: &str, memory_mib| User {
            process: process.to_owned(),
            program: program.to_owned(),
            memory_mib,
        };
        let expected = [
            user("4711", "/opt/a, b/miner", Some(9000)),
            user("12", "/usr/bin/cuzk", None),
        ];
        assert_eq!(parse_users(text), expected);
        assert!(parse_users("No running processes found\n").is_empty());
    }
}
