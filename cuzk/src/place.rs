//! Where results go: files that the user names, looked at before the work begins.
//!
//! Not the work. The invariants: a regular file is whole or as it was. Everything else that
//! has a name stays as it is: a link, a pipe, a device.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cuzk_files::{check_folder, write_whole};

use crate::failure::Failure;
use crate::output;

/// How many links lead from one to the next at most, as on Linux.
const LINKS_MAX: usize = 40;

/// Folders of a process's own open files, of which links do not tell a path.
const DESCRIPTORS: [&str; 2] = ["/proc/self/fd", "/dev/fd"];

/// A place that can be written, as far as can be told before.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// As the user has it.
    path: PathBuf,
    target: Target,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// A regular file, there or not, without links on the way.
    File(PathBuf),
    /// This process's own: opened again it would have another position.
    Stdout,
    /// A pipe or a device.
    Stream(PathBuf),
}

impl Place {
    /// # Errors
    /// A folder, and a file in a folder that is not there or takes none.
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        let target = Target::of(path).map_err(|error| Failure::file(path, &error))?;
        if target == Target::Stdout {
            output::take_stdout();
        }
        Ok(Self {
            path: path.to_owned(),
            target,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The regular file, if it is or is to be one.
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

    /// Waits for whoever reads a pipe.
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

    /// # Errors
    /// Two results that would go to one file, of which one would be lost.
    pub(crate) fn check_distinct<'a>(
        places: impl IntoIterator<Item = &'a Self>,
    ) -> Result<(), Failure> {
        let mut before: Vec<&Self> = Vec::new();
        for place in places.into_iter().filter(|place| place.file().is_some()) {
            if let Some(same) = before.iter().find(|other| other.target == place.target) {
                return Err(Failure::input(format!(
                    "{} and {} are one file: each result needs its own",
                    same.path.display(),
                    place.path.display()
                )));
            }
            before.push(place);
        }
        Ok(())
    }

    /// # Errors
    /// A result that would take the place of one of these requests.
    pub(crate) fn check_no_request<'a>(
        places: impl IntoIterator<Item = &'a Self>,
        requests: &[PathBuf],
    ) -> Result<(), Failure> {
        // A path that cannot be followed cannot be read; reading it reports that.
        let requests = requests.iter().filter_map(|path| followed(path).ok());
        let requests: Vec<_> = requests.collect();
        let mut files = places.into_iter().filter(|place| place.file().is_some());
        let lost = files.find(|place| requests.iter().any(|path| place.file() == Some(path)));
        lost.map_or(Ok(()), |place| {
            Err(Failure::input(format!(
                "{} is a request's file: write the result to another",
                place.path.display()
            )))
        })
    }
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        let followed = followed(path)?;
        if is_descriptor(&followed) && followed.file_name() == Some("1".as_ref()) {
            return Ok(Self::Stdout);
        }
        match std::fs::metadata(&followed) {
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => Ok(Self::Stream(followed)),
            Ok(_) if is_descriptor(&followed) => Ok(Self::Stream(followed)),
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

/// Where `path` leads, with links followed also where nothing is at their end.
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
            Place::new(&at(link)).unwrap().write(bytes).unwrap();
            assert_eq!(std::fs::read(at("elsewhere/proof")).unwrap(), bytes);
        }
        assert!(at("first").is_symlink() && at("second").is_symlink());
    }

    #[test]
    fn what_cannot_be_a_file_is_said_under_the_name_it_was_given() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink(at("loop"), at("loop")).unwrap();
        for path in [at("no/proof"), at("loop"), at(""), at("..")] {
            let failure = Place::new(&path).unwrap_err().to_string();
            assert!(failure.starts_with(path.to_str().unwrap()), "{failure}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn one_file_has_many_names_and_a_device_takes_all_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("a", at("link")).unwrap();
        let distinct = |paths: [PathBuf; 2]| {
            let places = paths.map(|path| Place::new(&path).unwrap());
            Place::check_distinct(&places)
        };
        assert!(distinct([at("a"), at("b")]).is_ok());
        std::fs::create_dir(at("folder")).unwrap();
        assert!(distinct([at("a"), at("folder/../a")]).is_err());
        assert!(distinct([at("link"), at("a")]).is_err());
        assert!(distinct(["/dev/null", "/dev/null"].map(PathBuf::from)).is_ok());
    }

    #[test]
    fn standard_output_is_known_by_any_name() {
        for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert!(Place::new(Path::new(name)).unwrap().is_stdout(), "{name}");
        }
        assert!(!Place::new(Path::new("/dev/null")).unwrap().is_stdout());
    }
}
