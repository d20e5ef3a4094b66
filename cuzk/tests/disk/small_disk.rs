//! A small file system in memory, and the program on it.
//!
//! Not what is tried on it. The invariant: nobody but the command sees the file system, which
//! is gone when the command has ended.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cuzk_bounded::BoundedCommand;
use cuzk_core::error::ErrorCode;
use tempfile::TempDir;

use crate::common::{CACHE, param_cache, text};

/// A variable that no command reads.
pub(crate) const NONE: &str = "NO_FOLDER_OF_A_COMMAND";

/// Programs that give a command mounts of its own. The first needs to be root.
const ENTER: [&[&str]; 2] = [
    &["unshare", "--mount"],
    &["unshare", "--map-root-user", "--mount"],
];

/// Makes a file system of `$2` bytes at `$1`, and runs the rest.
const MOUNT: &str = "disk=$1; size=$2; shift 2\n\
                     mount -t tmpfs -o \"size=$size\" none \"$disk\" || exit 125\n";

/// Runs a command, and lists the files that are there after it. Before that it puts links there to
/// the files of the folder `LINKED`, if that is set, and fills the rest, if `FULL` is.
const RUN: &str = "[ -z \"$LINKED\" ] || ln -s \"$LINKED\"/* \"$disk\"\n\
                   [ -z \"$FULL\" ] || cat /dev/zero > \"$disk/fill\" 2> /dev/null\n\
                   \"$@\"\n\
                   code=$?\n\
                   cd \"$disk\" && find . -type f -exec stat -c '%s %n' {} + > \"$disk.files\"\n\
                   exit $code\n";

/// Runs a command in its place. It keeps its number.
pub(crate) const START: &str = "exec \"$@\"\n";

/// A place for a small disk, in a folder on the large one.
pub(crate) struct Disk {
    folder: TempDir,
    pub(crate) enter: &'static [&'static str],
}

/// The end of a command that used the disk.
pub(crate) struct Ran {
    pub(crate) output: Output,
    /// The regular files that are on the disk, with their lengths, without the one that filled
    /// it.
    pub(crate) files: Vec<(u64, String)>,
}

impl Disk {
    /// Returns none where no command can have mounts of its own, and says so.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("disk")).unwrap();
        let can_enter = |enter: &&[&str]| {
            let disk = Self {
                folder: tempfile::tempdir().unwrap(),
                enter: ENTER[0],
            };
            std::fs::create_dir(disk.path("")).unwrap();
            let tried = disk.command(enter, START, 4096, &["true"]).output_bounded();
            tried.is_ok_and(|output| output.status.success())
        };
        let Some(enter) = ENTER.into_iter().find(can_enter) else {
            let line = format!("skipped, it needs to mount a file system: {test}\n");
            // The harness keeps back what `eprintln!` writes.
            drop(std::io::stderr().write_all(line.as_bytes()));
            return None;
        };
        Some(Self { folder, enter })
    }

    /// Returns a path on the small disk.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("disk").join(name)
    }

    /// Returns a path beside it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(
        &self,
        enter: &[&str],
        script: &str,
        bytes: u64,
        arguments: &[&str],
    ) -> Command {
        let (program, options) = enter.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(options).args(["sh", "-c"]);
        command.arg(format!("{MOUNT}{script}")).arg("sh");
        command.arg(self.folder.path().join("disk"));
        command.arg(bytes.to_string()).args(arguments);
        command.env("LC_ALL", "C").env_remove("IPFS_GATEWAY");
        command.env_remove("FULL").env_remove("LINKED");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program. The folder of the variable `on_disk` is on the disk.
    pub(crate) fn run(&self, begin: Begin, on_disk: &str, arguments: &[&str]) -> Ran {
        let arguments = [&[env!("CARGO_BIN_EXE_cuzk")], arguments].concat();
        let bytes = match begin {
            Begin::Empty(bytes) => bytes,
            Begin::Full | Begin::FullWithLinks => 1 << 20,
        };
        let mut command = self.command(self.enter, RUN, bytes, &arguments);
        command.env(CACHE, param_cache());
        command.env(on_disk, self.path(""));
        if !matches!(begin, Begin::Empty(_)) {
            command.env("FULL", "1");
        }
        if matches!(begin, Begin::FullWithLinks) {
            command.env("LINKED", param_cache());
        }
        let output = command.output_bounded().unwrap();
        assert_ne!(output.status.code(), Some(125), "{output:?}");
        let files = std::fs::read_to_string(self.beside("disk.files")).unwrap();
        let sized = files.lines().map(|line| {
            let (bytes, name) = line.split_once(' ').unwrap();
            (bytes.parse().unwrap(), name.to_owned())
        });
        let files = sized.filter(|(_, name)| name != "./fill").collect();
        Ran { output, files }
    }
}

/// The disk when a command begins.
#[derive(Clone, Copy)]
pub(crate) enum Begin {
    /// It has so many bytes, and all are free.
    Empty(u64),
    Full,
    /// It is full, and has links to the parameters of other tests.
    FullWithLinks,
}

impl Ran {
    /// Checks the error, which names a place on the disk, and the files that are left.
    pub(crate) fn check(
        &self,
        code: ErrorCode,
        place: &Path,
        is_allowed: impl Fn(u64, &str) -> bool,
    ) {
        let said = String::from_utf8_lossy(&self.output.stderr);
        assert_eq!(self.output.status.code(), Some(1), "{said}");
        assert!(!said.contains("panicked"), "{said}");
        let end = format!(" [{code}]");
        let error = said.lines().find(|line| line.ends_with(&end));
        let error = error.unwrap_or_else(|| panic!("no {code} in {said}"));
        assert!(error.contains(text(place)), "{error}");
        assert!(error.contains("; "), "it says what to do: {error}");
        for (bytes, name) in &self.files {
            assert!(is_allowed(*bytes, name), "{bytes} bytes in {name}: {said}");
        }
    }
}
