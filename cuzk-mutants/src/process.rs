//! Processes with limits.
//!
//! A mutant may never end, or ask for all the memory there is. So a test has a deadline and a limit of
//! its resident memory. Invariant: all processes that a test has left in its group are killed.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// The most resident memory of a test, in bytes.
const MEMORY_BYTES_MAX: u64 = 6 << 30;

const PAGE_BYTES: u64 = 4096;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With the code 0.
    Well,
    /// With another code, or by a signal of its own.
    Badly,
    /// It was killed at its deadline, or because of its memory.
    Killed,
}

/// Runs a command to its end in a group of its own. Its output goes into a file.
///
/// # Errors
/// The command cannot be started, or the file cannot be written.
pub fn run(command: &mut Command, deadline: Duration, out: &Path) -> Result<Ended> {
    let file = fs::File::create(out).with_context(|| out.display().to_string())?;
    let same = file
        .try_clone()
        .with_context(|| out.display().to_string())?;
    let begun = Instant::now();
    command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(same)
        .process_group(0);
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .spawn()
        .with_context(|| format!("{name} cannot be started"))?;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait().context(name.clone())? {
            break Some(status);
        }
        if begun.elapsed() > deadline || resident_bytes(&child) > MEMORY_BYTES_MAX {
            break None;
        }
        sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    kill_group(&child);
    if status.is_none() {
        child.wait().context(name)?;
    }
    Ok(status.map_or(Ended::Killed, ended))
}

fn ended(status: ExitStatus) -> Ended {
    // A program that is out of memory is killed by the system.
    match (status.success(), status.signal()) {
        (true, _) => Ended::Well,
        (false, Some(9)) => Ended::Killed,
        (false, _) => Ended::Badly,
    }
}

fn resident_bytes(child: &Child) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/statm", child.id())).unwrap_or_default();
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(PAGE_BYTES)
}

fn kill_group(child: &Child) {
    let group = format!("-{}", child.id());
    let mut command = Command::new("kill");
    command.args(["-KILL", "--", &group]).stderr(Stdio::null());
    // There is no group any more if all its processes have ended.
    _ = command.status();
}

/// Returns what a command prints.
///
/// # Errors
/// The command cannot be started, or it fails.
pub fn output(folder: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .stderr(Stdio::inherit());
    let output = command
        .output()
        .with_context(|| format!("{program} cannot be started"))?;
    if !output.status.success() {
        bail!(
            "{program} {} failed: {}",
            arguments.join(" "),
            output.status
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of {program}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(script: &str, deadline: Duration) -> Ended {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(&mut command, deadline, &folder.path().join("out")).unwrap()
    }

    #[test]
    fn a_process_ends_in_one_of_three_ways() {
        let ample = Duration::from_secs(600);
        assert_eq!(ended("true", ample), Ended::Well);
        assert_eq!(ended("false", ample), Ended::Badly);
        assert_eq!(ended("kill -ABRT $$", ample), Ended::Badly);
        assert_eq!(ended("sleep 600", Duration::from_millis(10)), Ended::Killed);
    }
}
