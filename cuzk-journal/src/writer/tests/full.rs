//! A disk that is full while a journal is opened.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::disk::Disk;

/// A file on a disk with room for a number of changes; `None` means no limit.
#[derive(Debug)]
struct Roomy {
    file: File,
    left: Option<Arc<AtomicU64>>,
    refused: Arc<AtomicUsize>,
}

impl Roomy {
    fn change(&self) -> io::Result<()> {
        let less = |left: u64| left.checked_sub(1);
        match &self.left {
            Some(left)
                if left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
                    .is_err() =>
            {
                self.refused.fetch_add(1, Ordering::SeqCst);
                Err(io::ErrorKind::StorageFull.into())
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Disk for Roomy {
    fn len(&self) -> io::Result<u64> {
        Disk::len(&self.file)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        Disk::read_at(&self.file, out, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change()?;
        Disk::write_all_at(&self.file, bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens copies of the journal at `path` with more and more room, until one opens.
/// Returns it with the number of changes that were refused. The file has room again
/// when it is opened for the second time.
fn opened_on_a_full_disk(path: &Path, limits: Limits) -> (Journal, usize) {
    let copy = path.with_extension("copy");
    for room in 0..100 {
        fs::copy(path, &copy).unwrap();
        let refused = Arc::new(AtomicUsize::new(0));
        let left = Mutex::new(Some(Arc::new(AtomicU64::new(room))));
        let counter = Arc::clone(&refused);
        let open_disk = move |path: &Path| {
            let file = File::options().read(true).write(true).open(path).unwrap();
            Ok(Roomy {
                file,
                left: lock(&left).take(),
                refused: Arc::clone(&counter),
            })
        };
        match Journal::open_on(&copy, limits, Box::new(|| 0), open_disk) {
            Ok(journal) => return (journal, refused.load(Ordering::SeqCst)),
            // Opening fails if its own writes fail.
            Err(JournalError::Io { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it is never opened");
}

/// Keeps what a thread warns of.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let keep = &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            if field.name() == "message" {
                lock(&self.0).push(format!("{value:?}"));
            }
        };
        event.record(keep);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// Does what [`opened_on_a_full_disk`] does, and returns the last warning as well.
fn warned_on_a_full_disk(path: &Path, limits: Limits) -> (Journal, usize, String) {
    let warnings = Warnings::default();
    let open = || opened_on_a_full_disk(path, limits);
    let (journal, refused) = tracing::subscriber::with_default(warnings.clone(), open);
    let last = lock(&warnings.0).pop().unwrap();
    (journal, refused, last)
}

/// Returns bytes that do not compress.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    ChaCha8Rng::seed_from_u64(1).fill(&mut bytes[..]);
    bytes
}

/// Makes a journal with an ended job at 0, and a pending one after it.
fn journal(path: &Path, ended_bytes: usize, pending_bytes: usize) {
    let journal = Journal::open_with_clock(path, Limits::default(), || 0).unwrap();
    let options = JobOptions {
        partitions: 1,
        ..JobOptions::default()
    };
    let accept = |id, bytes| journal.accept(id, &options, &noise(bytes)).unwrap();
    accept("ended", ended_bytes);
    accept("pending", pending_bytes);
    journal.end("ended", End::Cancelled).unwrap();
}

#[test]
fn a_journal_opens_without_room_to_let_old_results_go() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    journal(&path, 100, 100);
    let at_once = Limits {
        result_age: Duration::ZERO,
        ..Limits::default()
    };
    let (journal, refused, warning) = warned_on_a_full_disk(&path, at_once);
    assert!(refused > 0);
    assert_eq!(warning, "old results could not be removed from the journal");
    assert_eq!(journal.state("pending").unwrap(), Some(State::Pending));
    assert_eq!(journal.state("ended").unwrap(), None);
}

#[test]
fn a_journal_opens_without_room_to_be_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    journal(&path, 72 << 20, 8 << 20);
    assert!(fs::metadata(&path).unwrap().len() > 64 << 20);
    let (journal, refused, warning) = warned_on_a_full_disk(&path, Limits::default());
    assert!(refused > 0);
    assert_eq!(warning, "the journal could not be compacted");
    assert!(journal.request("pending").unwrap() == noise(8 << 20));
    journal.end("pending", End::Cancelled).unwrap();
}
