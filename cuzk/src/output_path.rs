//! The paths of results, which the user names. They are checked before the work begins.
//!
//! The invariants: a regular file is written whole or stays as it was. A link, a pipe and a
//! device stay what they are.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use cuzk_core::error::ErrorCode;
use cuzk_files::{FileIdentity, check_folder, write_whole};
use cuzk_memory::Cancellation;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, shown};

/// The largest number of links that are followed, as on Linux.
const LINKS_MAX: usize = 40;

/// The folders of a process's own open files. Their links are not paths.
const DESCRIPTORS: [&str; 2] = ["/proc/self/fd", "/dev/fd"];

/// The path of a result. It can be written, as far as this can be checked before.
#[derive(Clone, Debug)]
pub(crate) struct OutputPath {
    /// As the user wrote it.
    path: PathBuf,
    target: Target,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// A regular file, which need not exist. The path has no links.
    File(PathBuf),
    /// This process's standard output. It is not opened again, because it would then have
    /// another position.
    Stdout,
    /// A pipe or a device.
    Stream(PathBuf),
}

impl OutputPath {
    /// Checks the path. `-` is standard output.
    ///
    /// # Errors
    /// If it is a folder or is read-only, or if its folder does not exist or takes no files.
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        let target = Target::of(path).map_err(|error| refused(path, &error))?;
        if target == Target::Stdout {
            output::take_stdout();
        }
        Ok(Self {
            path: path.to_owned(),
            target,
        })
    }

    /// Returns the path as the user wrote it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the regular file, unless it is another kind of output.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.target {
            Target::File(file) => Some(file),
            Target::Stdout | Target::Stream(_) => None,
        }
    }

    /// Returns true if reports would go to the same place.
    pub(crate) fn is_stdout(&self) -> bool {
        self.target == Target::Stdout
    }

    /// Writes the result. A write to a pipe waits for its reader.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match &self.target {
            Target::File(file) => write_whole(file, bytes),
            Target::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
            Target::Stream(stream) => File::options()
                .append(true)
                .open(stream)
                .and_then(|mut stream| stream.write_all(bytes)),
        };
        written.map_err(|error| Failure::file(&self.path, &error))
    }

    /// Writes the result, which `what` names, unless a signal comes. A regular file that is on its
    /// way is waited for; a pipe may have no reader.
    ///
    /// # Errors
    /// The signal, and as [`Self::write`].
    pub(crate) fn write_unless_stopped(
        &self,
        what: &str,
        bytes: Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let (out, before) = (self.clone(), self.present());
        let left = || self.left(what, before);
        let write = move || out.write(&bytes);
        if self.file().is_none() {
            return interrupt.unless_it_comes("writing", left, write)?;
        }
        // Nothing asks it: a write to a disk ends soon.
        let stop = Cancellation::default();
        interrupt.stops("writing", left, &stop, write)?
    }

    /// Returns the file that is there now, if the result is a regular file.
    pub(crate) fn present(&self) -> Option<FileIdentity> {
        self.file().and_then(FileIdentity::of)
    }

    /// Describes what a signal has left of a result, which `what` names. `before` is the file
    /// that was [`present`](Self::present) when the work began.
    pub(crate) fn left(&self, what: &str, before: Option<FileIdentity>) -> String {
        let path = shown(&self.path);
        if self.file().is_none() {
            return format!("the {what} is not whole in {path}; make it again");
        }
        match self.present() {
            None => format!("the {what} is not made, and nothing of it is kept"),
            now if now == before => format!("the {what} is not made, and {path} is as it was"),
            Some(_) => format!("the {what} is made, and is in {path}"),
        }
    }

    /// Checks that no two results have the same file, because one would be lost.
    ///
    /// # Errors
    /// The first two that have.
    pub(crate) fn check_distinct<'a>(
        outs: impl IntoIterator<Item = &'a Self>,
    ) -> Result<(), Failure> {
        let mut before: Vec<&Self> = Vec::new();
        for out in outs.into_iter().filter(|out| out.file().is_some()) {
            if let Some(same) = before.iter().find(|other| other.target == out.target) {
                let (one, other) = (shown(&same.path), shown(&out.path));
                return Err(Failure::input(format!(
                    "{one} and {other} are one file; each result needs its own"
                )));
            }
            before.push(out);
        }
        Ok(())
    }

    /// Checks that no result replaces one of these files, which the command reads. It must not
    /// replace another file that looks like a request, too: two options may be swapped.
    ///
    /// # Errors
    /// The first that does.
    pub(crate) fn check_no_input<'a, 'b>(
        outs: impl IntoIterator<Item = &'a Self>,
        inputs: impl IntoIterator<Item = &'b PathBuf>,
    ) -> Result<(), Failure> {
        // A path that cannot be followed cannot be read; reading it reports that.
        let inputs = inputs.into_iter();
        let inputs: Vec<_> = inputs.filter_map(|path| followed(path).ok()).collect();
        for out in outs {
            let Some(file) = out.file() else { continue };
            let path = shown(&out.path);
            if inputs.iter().any(|input| input == file) {
                return Err(Failure::input(format!(
                    "{path} is a file that the command reads; write the result to another"
                )));
            }
            if looks_like_a_request(file) {
                return Err(Failure::input(format!(
                    "{path} is a request, which the result would replace; swap --request and \
                     --out if they are the wrong way round, or write the result to another file"
                )));
            }
        }
        Ok(())
    }
}

/// Returns true if a file begins as a request does. A file that cannot be read does not.
fn looks_like_a_request(path: &Path) -> bool {
    const LOOK_BYTES: u64 = 4096;
    const KEYS: [&str; 4] = [
        "\"proof_kind\"",
        "\"registered_proof\"",
        "\"vanilla_proof",
        "\"Phase1Out\"",
    ];
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LOOK_BYTES).read_to_end(&mut start));
    let start = String::from_utf8_lossy(&start);
    let json = start.trim_start_matches('\u{feff}').trim_start();
    read.is_ok() && json.starts_with('{') && KEYS.iter().any(|key| json.contains(key))
}

/// Returns the failure of a path at which nothing can be written.
fn refused(path: &Path, error: &io::Error) -> Failure {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if error.kind() == io::ErrorKind::IsADirectory {
        let message = format!("{}: it is a folder; name a file", shown(path));
        return Failure::new(ErrorCode::File, message);
    }
    let problem = match error.kind() {
        io::ErrorKind::NotFound if !folder.exists() => "does not exist; make it",
        io::ErrorKind::NotADirectory if !folder.is_dir() => "is not a folder; name a folder",
        _ => return Failure::file(path, error),
    };
    let (path, folder) = (shown(path), shown(folder));
    let message = format!("{path}: the folder {folder} {problem}, or write elsewhere");
    Failure::new(ErrorCode::File, message)
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let followed = followed(path)?;
        if is_descriptor(&followed) && followed.file_name() == Some("1".as_ref()) {
            return Ok(Self::Stdout);
        }
        match std::fs::metadata(&followed) {
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => Ok(Self::Stream(followed)),
            Ok(_) if is_descriptor(&followed) => Ok(Self::Stream(followed)),
            Ok(metadata) if metadata.permissions().readonly() => {
                let problem = "it is read-only; let it be written to, or name another file";
                Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
            }
            Ok(_) => Self::file(followed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::file(followed),
            Err(error) => Err(error),
        }
    }

    fn file(path: PathBuf) -> io::Result<Self> {
        check_folder(path.parent().unwrap_or(Path::new("/")))?;
        Ok(Self::File(path))
    }
}

/// Returns `path` with its links followed, also if there is no file at their end.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Some(name) = path.file_name() else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let folder = folder.canonicalize()?;
        let at = folder.join(name);
        match at.read_link() {
            Ok(link) if !is_descriptor(&at) => path = folder.join(link),
            _ => return Ok(at),
        }
    }
    Err(io::Error::other("links lead to links without an end"))
}

fn is_descriptor(path: &Path) -> bool {
    let folder = path.parent();
    DESCRIPTORS.iter().any(|own| {
        let own = Path::new(own).canonicalize();
        own.is_ok_and(|own| folder == Some(&own))
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_leads_to_the_file_that_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("elsewhere")).unwrap();
        symlink("elsewhere/proof", at("first")).unwrap();
        symlink(at("first"), at("second")).unwrap();
        for (link, bytes) in [("second", b"one"), ("first", b"two")] {
            OutputPath::new(&at(link)).unwrap().write(bytes).unwrap();
            assert_eq!(std::fs::read(at("elsewhere/proof")).unwrap(), bytes);
        }
        assert!(at("first").is_symlink() && at("second").is_symlink());
    }

    #[test]
    fn a_bad_path_is_reported_as_the_user_wrote_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink(at("loop"), at("loop")).unwrap();
        for path in [at("no/proof"), at("loop"), at(""), at("..")] {
            let failure = OutputPath::new(&path).unwrap_err().to_string();
            assert!(failure.starts_with(path.to_str().unwrap()), "{failure}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_takes_one_result_and_a_device_takes_several() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("a", at("link")).unwrap();
        let distinct = |paths: [PathBuf; 2]| {
            let paths = paths.map(|path| OutputPath::new(&path).unwrap());
            OutputPath::check_distinct(&paths)
        };
        assert!(distinct([at("a"), at("b")]).is_ok());
        std::fs::create_dir(at("folder")).unwrap();
        assert!(distinct([at("a"), at("folder/../a")]).is_err());
        assert!(distinct([at("link"), at("a")]).is_err());
        assert!(distinct(["/dev/null", "/dev/null"].map(PathBuf::from)).is_ok());
    }

    #[test]
    fn the_state_that_a_signal_leaves_is_that_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let out = OutputPath::new(&folder.path().join("circuit")).unwrap();
        let nothing = out.present();
        assert!(
            out.left("circuit", nothing)
                .contains("nothing of it is kept")
        );
        out.write(b"one").unwrap();
        assert!(
            out.left("circuit", nothing)
                .contains("the circuit is made, and is in")
        );
        // Another file of the same length takes its place.
        let one = out.present();
        assert!(out.left("circuit", one).contains("is as it was"));
        out.write(b"two").unwrap();
        assert!(out.left("circuit", one).contains("is made"));
        let stream = OutputPath::new(Path::new("/dev/null")).unwrap();
        assert!(
            stream
                .left("circuit", stream.present())
                .contains("is not whole")
        );
    }

    #[test]
    fn standard_output_is_known_by_any_name() {
        for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert!(
                OutputPath::new(Path::new(name)).unwrap().is_stdout(),
                "{name}"
            );
        }
        for name in ["/dev/null", "./-"] {
            let out = OutputPath::new(Path::new(name)).unwrap();
            assert!(!out.is_stdout(), "{name}");
        }
    }

    #[test]
    fn a_file_that_is_read_only_and_one_that_is_a_request_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("kept"), "a proof").unwrap();
        let mut permissions = std::fs::metadata(at("kept")).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(at("kept"), permissions).unwrap();
        let failure = OutputPath::new(&at("kept")).unwrap_err().to_string();
        assert!(failure.contains("read-only"), "{failure}");

        for (text, is_request) in [
            ("\u{feff} {\"proof_kind\": \"WINNING_POST\"}", true),
            ("{\"SectorNum\":1,\"Phase1Out\":\"\"}", true),
            ("{\"traceEvents\":[]}", false),
            ("proof_kind", false),
            ("", false),
        ] {
            std::fs::write(at("out"), text).unwrap();
            let out = OutputPath::new(&at("out")).unwrap();
            let checked = OutputPath::check_no_input([&out], &[at("request")]);
            assert_eq!(checked.is_err(), is_request, "{text}");
        }
    }
}
