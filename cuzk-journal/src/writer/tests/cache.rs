//! A disk behind a cache of pages, as Linux has it. After a failed sync the pages stay
//! in the cache, marked clean, and no later sync writes them.

use std::collections::BTreeSet;

use cuzk_bounded::bounded;

use super::*;
use crate::disk::Disk;

const PAGE_BYTES: usize = 4096;

#[derive(Debug, Default)]
struct Pages {
    cache: Vec<u8>,
    disk: Vec<u8>,
    /// The cached pages that the next sync writes.
    dirty: BTreeSet<usize>,
    syncs: usize,
    failures: usize,
}

/// A file that stays when its opener is gone, like one on a disk.
#[derive(Clone, Debug)]
struct Cached {
    pages: Arc<Mutex<Pages>>,
    /// The syncs that fail, counted from the first.
    failing: std::ops::Range<usize>,
}

impl Cached {
    fn new(bytes: Vec<u8>, failing: std::ops::Range<usize>) -> Self {
        let pages = Pages {
            cache: bytes.clone(),
            disk: bytes,
            ..Pages::default()
        };
        Self {
            pages: Arc::new(Mutex::new(pages)),
            failing,
        }
    }

    /// Returns the bytes that are left after a power cut.
    fn on_disk(&self) -> Vec<u8> {
        lock(&self.pages).disk.clone()
    }
}

impl Pages {
    /// Returns the bytes of a page that are within the file.
    fn bounds(&self, page: usize) -> std::ops::Range<usize> {
        let end = self.cache.len().min(self.disk.len());
        (page * PAGE_BYTES).min(end)..((page + 1) * PAGE_BYTES).min(end)
    }
}

impl Disk for Cached {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.pages).cache.len() as u64)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let pages = lock(&self.pages);
        let from = usize::try_from(offset).unwrap().min(pages.cache.len());
        let len = out.len().min(pages.cache.len() - from);
        out[..len].copy_from_slice(&pages.cache[from..from + len]);
        Ok(len)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut pages = lock(&self.pages);
        let from = usize::try_from(offset).unwrap();
        let end = from + bytes.len();
        assert!(end <= pages.cache.len(), "the store sets the length first");
        pages.cache[from..end].copy_from_slice(bytes);
        pages
            .dirty
            .extend(from / PAGE_BYTES..=(end - 1) / PAGE_BYTES);
        Ok(())
    }

    /// The length belongs to the file system, which has a journal of its own.
    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut pages = lock(&self.pages);
        let len = usize::try_from(len).unwrap();
        pages.cache.resize(len, 0);
        pages.disk.resize(len, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut pages = lock(&self.pages);
        let dirty = std::mem::take(&mut pages.dirty);
        pages.syncs += 1;
        if self.failing.contains(&(pages.syncs - 1)) {
            pages.failures += 1;
            return Err(io::Error::from_raw_os_error(5));
        }
        for page in dirty {
            let at = pages.bounds(page);
            let Pages { cache, disk, .. } = &mut *pages;
            disk[at.clone()].copy_from_slice(&cache[at]);
        }
        Ok(())
    }

    fn forget_cached(&self) -> io::Result<()> {
        let mut pages = lock(&self.pages);
        for page in 0..pages.disk.len().div_ceil(PAGE_BYTES) {
            let at = pages.bounds(page);
            if !pages.dirty.contains(&page) {
                let Pages { cache, disk, .. } = &mut *pages;
                cache[at.clone()].copy_from_slice(&disk[at]);
            }
        }
        Ok(())
    }
}

/// Returns the writer of the journal on `disk`. Opening is tried again, as a restarted
/// engine would.
fn writer_on(disk: &Cached) -> Writer {
    let path = Path::new("modelled");
    let open = |disk: Cached| Ok(open_checked(path, disk)?.1.into());
    let opened = bounded(|| {
        loop {
            match open(disk.clone()) {
                Ok(opened) => break opened,
                Err(JournalError::Io { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    let disk = disk.clone();
    let reopen = Box::new(move || open(disk.clone()));
    let mut writer = Writer::new(opened, Limits::default(), reopen);
    writer.reopen_after = Duration::ZERO;
    writer
}

/// Returns the number of steps in the journal on a disk with `bytes`. The whole journal
/// is read, as after a crash.
fn steps_on(bytes: Vec<u8>) -> u64 {
    let usage = writer_on(&Cached::new(bytes, 0..0)).usage();
    usage.jobs + 2 * usage.results
}

/// Each sync fails once, alone or with the next ones. The process continues, or is
/// killed and started again. The power is cut after each step.
#[test]
fn what_is_acknowledged_after_a_sync_that_failed_is_on_the_disk() {
    const STEPS: usize = 8;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    drop(Journal::open(&path, Limits::default()).unwrap());
    let empty = fs::read(&path).unwrap();
    let mut failures = 0;
    for (first, in_a_row, restarts) in (0..16)
        .flat_map(|first| [1, 2, 3].map(|in_a_row| (first, in_a_row)))
        .flat_map(|(first, in_a_row)| [false, true].map(|restarts| (first, in_a_row, restarts)))
    {
        let disk = Cached::new(empty.clone(), first..first + in_a_row);
        let mut writer = writer_on(&disk);
        for step in 0..STEPS {
            while let Err(error) = writer.change(change(step), NOW) {
                assert!(matches!(error, JournalError::Store { .. }), "{error}");
                if restarts {
                    drop(writer);
                    writer = writer_on(&disk);
                }
            }
            let seen = steps_on(disk.on_disk());
            let case = format!("{in_a_row} failed from sync {first}, restarts: {restarts}");
            assert_eq!(seen, step as u64 + 1, "{case}");
        }
        failures += lock(&disk.pages).failures;
    }
    // All of the first 16 syncs and the two after them, at most 6 times each.
    assert!(failures > 100, "{failures}");
}

/// A killed process left pages that the disk does not accept.
#[test]
fn what_cannot_be_written_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    drop(Journal::open(&path, Limits::default()).unwrap());
    let disk = Cached::new(fs::read(&path).unwrap(), 0..1);
    disk.write_all_at(&[0xee; PAGE_BYTES], 0).unwrap();
    let mut writer = writer_on(&disk);
    writer.reopen_after = Duration::MAX;
    writer.change(change(0), NOW).unwrap();
    assert_eq!(steps_on(disk.on_disk()), 1);
}
