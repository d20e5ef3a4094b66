//! The record beside an unfinished file: which bytes are in it, and from which source.
//!
//! The record has no bytes of the file. It has a JSON object a line. The invariants:
//!
//! * A line about bytes is written after the bytes.
//! * After a kill each complete line counts. After a crash of the machine only the lines
//!   before the last [`Line::Synced`] count: the file was on the disk then.
//! * A record that is damaged costs bytes, and never gives a wrong file: the digest of the
//!   whole file decides.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::ranges::{Ranges, SourceId};

/// The form of the record.
const VERSION: u32 = 1;

/// The largest record that is read, in bytes. A file of 64 GiB with a line for each MiB has
/// a record of 3 MB.
const RECORD_BYTES_MAX: u64 = 32 << 20;

/// A line of a record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first line: the form of the record, the digest of the file, the start of the
    /// system.
    Begin {
        version: u32,
        digest: String,
        system_start: String,
    },
    /// The length of the file in bytes.
    Length(u64),
    /// A source. Sources are numbered from zero in the order of these lines.
    Source(String),
    /// Bytes from a source: the first, the end, the source.
    Have(u64, u64, usize),
    /// The bytes from a source count no more.
    Drop(usize),
    /// The lines before this number of lines are of bytes that are on the disk.
    Synced(usize),
}

/// The state of a file that an earlier run left.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Its bytes. Their sources are indices into `sources`.
    pub(crate) ranges: Ranges,
    /// The texts of the sources.
    pub(crate) sources: Vec<String>,
}

/// Reads the record at `path`. Returns nothing if there is none, or it is of another file.
pub(crate) fn read(path: &Path, digest: Digest) -> Option<Left> {
    let bytes = cuzk_files::read_bounded(path, RECORD_BYTES_MAX).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // The last piece is a line that was not finished, or empty.
    let (whole, _) = text.rsplit_once('\n')?;
    let lines = whole.lines().map(serde_json::from_str::<Line>);
    let lines: Vec<_> = lines.map_while(Result::ok).collect();
    let Some(Line::Begin {
        version: VERSION,
        digest: of,
        system_start,
    }) = lines.first()
    else {
        return None;
    };
    if *of != digest.to_string() {
        return None;
    }
    let synced = lines.iter().rev().find_map(|line| match line {
        Line::Synced(count) => Some((*count).min(lines.len())),
        _ => None,
    });
    let is_same_start = *system_start == this_start() && !system_start.is_empty();
    let counted = if is_same_start {
        lines.len()
    } else {
        synced.unwrap_or(0)
    };
    Some(replay(lines.get(..counted)?))
}

fn replay(lines: &[Line]) -> Left {
    let mut left = Left::default();
    for line in lines {
        match line {
            Line::Length(length) => left.ranges.resize(*length),
            Line::Source(text) => left.sources.push(text.clone()),
            Line::Have(start, end, source) if start < end && *source < left.sources.len() => {
                left.ranges.put(*start..*end, *source);
            }
            Line::Drop(source) => {
                left.ranges.drop_source(*source);
            }
            Line::Have(..) | Line::Begin { .. } | Line::Synced(_) => {}
        }
    }
    left
}

/// Returns an id of this start of the system; an empty text if the system tells none.
fn this_start() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    read.unwrap_or_default().trim().to_owned()
}

/// A record that is written.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
    lines: usize,
    /// The number of each source in the record.
    numbers: BTreeMap<SourceId, usize>,
}

impl Record {
    /// Writes a record of `ranges` to `path` and keeps it open. `name_of` gives the text of
    /// a source. The bytes must be on the disk.
    pub(crate) fn begin(
        path: &Path,
        digest: Digest,
        ranges: &Ranges,
        name_of: impl Fn(SourceId) -> String,
    ) -> io::Result<Self> {
        let mut lines = vec![
            Line::Begin {
                version: VERSION,
                digest: digest.to_string(),
                system_start: this_start(),
            },
            Line::Length(ranges.length()),
        ];
        let mut numbers = BTreeMap::new();
        for (range, source) in ranges.spans() {
            let next = numbers.len();
            let number = *numbers.entry(source).or_insert(next);
            if number == next {
                lines.push(Line::Source(name_of(source)));
            }
            lines.push(Line::Have(range.start, range.end, number));
        }
        lines.push(Line::Synced(lines.len()));
        let text: String = lines.iter().map(text_of).collect::<io::Result<_>>()?;
        cuzk_files::write_whole(path, text.as_bytes())?;
        Ok(Self {
            file: File::options().append(true).open(path)?,
            lines: lines.len(),
            numbers,
        })
    }

    /// Records that `range` came from `source`, whose text is `name`.
    pub(crate) fn have(
        &mut self,
        range: Range<u64>,
        source: SourceId,
        name: &str,
    ) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let number = match self.numbers.get(&source) {
            Some(number) => *number,
            None => {
                self.add(&Line::Source(name.to_owned()))?;
                let number = self.numbers.len();
                self.numbers.insert(source, number);
                number
            }
        };
        self.add(&Line::Have(range.start, range.end, number))
    }

    /// Records that the bytes of `source` count no more.
    pub(crate) fn dropped(&mut self, source: SourceId) -> io::Result<()> {
        match self.numbers.get(&source) {
            Some(&number) => self.add(&Line::Drop(number)),
            None => Ok(()),
        }
    }

    /// Records the length of the file in bytes.
    pub(crate) fn length(&mut self, length: u64) -> io::Result<()> {
        self.add(&Line::Length(length))
    }

    /// Returns the number of lines, for [`Self::synced`].
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    /// Records that the bytes of the first `lines` lines are on the disk.
    pub(crate) fn synced(&mut self, lines: usize) -> io::Result<()> {
        self.add(&Line::Synced(lines))
    }

    fn add(&mut self, line: &Line) -> io::Result<()> {
        self.file.write_all(text_of(line)?.as_bytes())?;
        self.lines += 1;
        Ok(())
    }
}

fn text_of(line: &Line) -> io::Result<String> {
    let text = serde_json::to_string(line).map_err(io::Error::other)?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NAMES: [&str; 3] = ["http://a/", "http://b/", "/mnt"];

    fn digest() -> Digest {
        Digest::of_bytes(b"file")
    }

    fn spans(left: &Left) -> Vec<(Range<u64>, &str)> {
        let name = |source: SourceId| left.sources[source].as_str();
        let spans = left.ranges.spans();
        spans.map(|(range, source)| (range, name(source))).collect()
    }

    fn begin(path: &Path) -> Record {
        let mut ranges = Ranges::new(100);
        ranges.put(0..10, 2);
        ranges.put(50..60, 1);
        Record::begin(path, digest(), &ranges, |source| NAMES[source].to_owned()).unwrap()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let mut record = begin(&path);
        record.have(10..20, 0, NAMES[0]).unwrap();
        record.have(20..20, 1, NAMES[1]).unwrap();
        record.have(20..30, 2, NAMES[2]).unwrap();
        record.dropped(1).unwrap();
        record.length(25).unwrap();
        let left = read(&path, digest()).unwrap();
        let expected = vec![(0..10, "/mnt"), (10..20, "http://a/"), (20..25, "/mnt")];
        assert_eq!((spans(&left), left.ranges.length()), (expected, 25));
        assert!(read(&path, Digest::of_bytes(b"other")).is_none());
        assert!(read(&folder.path().join("none"), digest()).is_none());
    }

    #[test]
    fn a_line_that_was_not_finished_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        begin(&path).have(70..80, 1, NAMES[1]).unwrap();
        let whole = fs::read(&path).unwrap();
        let expected = [(0..10, "/mnt"), (50..60, "http://b/")];
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let left = read(&path, digest());
            // Each line before it counts, whichever were written.
            let is_part = left.is_none_or(|left| spans(&left).iter().all(|s| expected.contains(s)));
            assert!(is_part, "{length}");
        }
    }

    #[test]
    fn after_a_crash_of_the_machine_bytes_on_the_disk_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let mut record = begin(&path);
        record.have(10..20, 2, NAMES[2]).unwrap();
        let lines = record.lines();
        record.have(20..30, 2, NAMES[2]).unwrap();
        record.synced(lines).unwrap();
        record.have(30..40, 2, NAMES[2]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let other = text.replace(&this_start(), "another");
        fs::write(&path, other).unwrap();
        let left = read(&path, digest()).unwrap();
        assert_eq!(spans(&left), [(0..20, "/mnt"), (50..60, "http://b/")]);
    }

    #[test]
    fn a_record_with_wrong_lines_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        drop(begin(&path));
        let first = fs::read_to_string(&path).unwrap();
        for lines in [
            "{\"have\":[0,18446744073709551615,0]}\n",
            "{\"have\":[9,3,0]}\n",
            "{\"have\":[3,9,77]}\n",
            "{\"length\":18446744073709551615}\n{\"have\":[0,18446744073709551615,0]}\n",
            "{\"drop\":99}\n",
            "{\"synced\":99999}\n",
            "{\"unknown\":1}\n",
            "\n\n",
        ] {
            fs::write(&path, format!("{first}{lines}")).unwrap();
            assert!(read(&path, digest()).is_some(), "{lines}");
        }
    }

    #[test]
    fn mutated_records_are_read_or_count_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let mut record = begin(&path);
        record.have(70..80, 1, NAMES[1]).unwrap();
        record.dropped(2).unwrap();
        record.length(75).unwrap();
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/records");
        let corpus = cuzk_fuzz::Corpus::read(corpus).with(fs::read(&path).unwrap());
        const WORDS: [&[u8]; 4] = [b"18446744073709551615", b"-1", b"1e99", b"[[["];
        let decode = |input: &[u8]| {
            fs::write(&path, input).unwrap();
            let left = read(&path, digest()).ok_or("it counts for nothing")?;
            let mut end = 0;
            for (range, source) in left.ranges.spans() {
                assert!(end <= range.start && range.start < range.end);
                assert!(range.end <= left.ranges.length() && source < left.sources.len());
                end = range.end;
            }
            Ok::<_, &str>(())
        };
        let corpus = corpus.with_words(&WORDS);
        corpus.fuzz_decoder("records", 3_000, decode, |_| true);
    }
}
