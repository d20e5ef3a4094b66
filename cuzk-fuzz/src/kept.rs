//! The inputs that a guided run found, kept for the next one.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

/// The variable with the folder in which guided runs keep the inputs that reached something new,
/// in a folder for each decoder.
pub(crate) const FOLDER: &str = "CUZK_FUZZ_CORPUS";

/// The folder without [`FOLDER`].
const DEFAULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/fuzz");

/// Returns the folder in which guided runs keep inputs. It has a folder for each package, and in it one
/// for each decoder.
#[must_use]
pub fn folder() -> PathBuf {
    std::env::var_os(FOLDER).map_or_else(|| DEFAULT.into(), PathBuf::from)
}

/// Returns the name of the decoder that has its inputs in `PACKAGE/tests/corpus/NAME`:
/// `PACKAGE/NAME`.
pub(crate) fn name(corpus: &Path) -> String {
    let parts: Vec<_> = corpus
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => Some(part.to_string_lossy()),
            _ => None,
        })
        .collect();
    match &parts[..] {
        [.., package, tests, corpus, name] if tests == "tests" && corpus == "corpus" => {
            format!("{package}/{name}")
        }
        [.., name] => name.to_string(),
        [] => "unnamed".to_owned(),
    }
}

/// The inputs of one decoder.
#[derive(Debug)]
pub(crate) struct Kept {
    folder: PathBuf,
    /// The last input of a run that did not come to its end.
    pub(crate) unfinished: Option<Vec<u8>>,
    /// The length and the bytes of the input that is tried.
    current: Option<File>,
    buffer: Vec<u8>,
}

impl Kept {
    pub(crate) fn of(name: &str) -> Self {
        Self::at(folder().join(name))
    }

    pub(crate) fn at(folder: PathBuf) -> Self {
        let mut kept = Self {
            folder,
            unfinished: None,
            current: None,
            buffer: Vec::new(),
        };
        let last = fs::read(kept.current_path()).unwrap_or_default();
        if let Some((length, rest)) = last.split_first_chunk() {
            let length = usize::try_from(u64::from_le_bytes(*length)).unwrap();
            kept.unfinished = rest.get(..length).map(<[u8]>::to_vec);
        }
        kept
    }

    fn current_path(&self) -> PathBuf {
        self.folder.with_extension("current")
    }

    /// Says that an input is tried now. It is in a file then, because it may end the process, which
    /// a stack overflow does.
    pub(crate) fn begin(&mut self, input: &[u8]) {
        let path = self.current_path();
        let current = self.current.get_or_insert_with(|| {
            fs::create_dir_all(&self.folder).unwrap();
            File::create(path).unwrap()
        });
        self.buffer.clear();
        self.buffer
            .extend_from_slice(&(input.len() as u64).to_le_bytes());
        self.buffer.extend_from_slice(input);
        current.write_all_at(&self.buffer, 0).unwrap();
    }

    /// Says that the run came to its end.
    pub(crate) fn end(self) {
        fs::remove_file(self.current_path()).ok();
    }

    /// Returns the inputs, the shortest first. Of those that reach the same it is found first.
    pub(crate) fn inputs(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let mut inputs: Vec<_> = entries
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let input = fs::read(&path).unwrap();
                (path, input)
            })
            .collect();
        inputs.sort_by(|(one, first), (other, second)| {
            (first.len(), one).cmp(&(second.len(), other))
        });
        inputs
    }

    /// Adds an input.
    pub(crate) fn add(&self, input: &[u8]) {
        fs::create_dir_all(&self.folder).unwrap();
        // A run that is killed leaves no half of an input.
        let new = self.folder.with_extension("new");
        fs::write(&new, input).unwrap();
        fs::rename(new, self.path_of(input)).unwrap();
    }

    /// Removes an input.
    pub(crate) fn remove(&self, input: &[u8]) {
        fs::remove_file(self.path_of(input)).ok();
    }

    fn path_of(&self, input: &[u8]) -> PathBuf {
        self.folder.join(crate::file_name("", input))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoder_has_the_name_of_its_package_and_corpus() {
        for (corpus, expected) in [
            ("/w/cuzk-server/tests/corpus/tokens", "cuzk-server/tokens"),
            ("../cuzk-pce/../cuzk-pce/tests/corpus/rows", "cuzk-pce/rows"),
            ("/tmp/some", "some"),
            ("/", "unnamed"),
        ] {
            assert_eq!(name(Path::new(corpus)), expected);
        }
    }

    #[test]
    fn inputs_are_kept_and_come_from_the_shortest() {
        let folder = std::env::temp_dir().join(format!("cuzk-kept-{}", std::process::id()));
        let kept = Kept::at(folder.join("some/decoder"));
        assert_eq!(kept.inputs(), []);
        for input in [&b"long"[..], b"", b"mid", b"long"] {
            kept.add(input);
        }
        let inputs: Vec<_> = kept.inputs().into_iter().map(|(_, input)| input).collect();
        assert_eq!(inputs, [&b""[..], b"mid", b"long"]);
        for input in [&b"mid"[..], b"unknown"] {
            kept.remove(input);
        }
        assert_eq!(kept.inputs().len(), 2);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_input_that_ended_a_run_is_known_to_the_next() {
        let folder = std::env::temp_dir().join(format!("cuzk-current-{}", std::process::id()));
        let kept = || Kept::at(folder.join("decoder"));
        let mut first = kept();
        assert_eq!(first.unfinished, None);
        for input in [&b"a long one"[..], b"short"] {
            first.begin(input);
        }
        assert_eq!(kept().unfinished.unwrap(), b"short");
        first.end();
        assert_eq!(kept().unfinished, None);
        fs::remove_dir_all(folder).unwrap();
    }
}
