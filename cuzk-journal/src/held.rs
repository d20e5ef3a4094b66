//! A file whose changes are held back until the file is trusted.
//!
//! Opening a store writes to its file: a mark that it is in use, and after a crash the
//! recovered data. A damaged file must stay as it was found. So all writes stay in
//! memory, in order, while the file is opened and checked, and reads see them.
//!
//! [`HeldFile::release`] writes them out, with the same syncs between them. Without it
//! they are never written. If it fails, nothing is written after it; otherwise the
//! store would mark a file as closed in good order that is only partly written.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use redb::StorageBackend;

use crate::disk::Disk;

/// A file, shared between the store and the code that decides about it.
#[derive(Clone, Debug)]
pub(crate) struct HeldFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    disk: Box<dyn Disk>,
    state: RwLock<State>,
}

#[derive(Debug)]
enum State {
    Holding(Held),
    /// All changes were written, and later ones are written at once.
    Open,
    /// Some changes could not be written: nothing is read or written any more.
    Failed,
}

#[derive(Debug)]
struct Held {
    changes: Vec<Change>,
    len: u64,
}

#[derive(Debug)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
    Sync,
}

impl HeldFile {
    /// Returns a file that holds back its changes to `disk`.
    pub(crate) fn holding(disk: impl Disk) -> io::Result<Self> {
        let held = Held {
            changes: Vec::new(),
            len: disk.len()?,
        };
        Ok(Self::new(Box::new(disk), State::Holding(held)))
    }

    /// Returns a file that writes all changes at once.
    pub(crate) fn open(disk: impl Disk) -> Self {
        Self::new(Box::new(disk), State::Open)
    }

    fn new(disk: Box<dyn Disk>, state: State) -> Self {
        Self(Arc::new(Inner {
            disk,
            state: RwLock::new(state),
        }))
    }

    /// Writes the changes that were held back. Later changes are written at once.
    pub(crate) fn release(&self) -> io::Result<()> {
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        let changes = match &mut *state {
            State::Holding(held) => std::mem::take(&mut held.changes),
            State::Open => return Ok(()),
            State::Failed => return Err(failed()),
        };
        // Remains so unless all changes are written.
        *state = State::Failed;
        for change in changes {
            match change {
                Change::Write { offset, bytes } => self.0.disk.write_all_at(&bytes, offset)?,
                Change::SetLen(len) => self.0.disk.set_len(len)?,
                Change::Sync => self.0.disk.sync_data()?,
            }
        }
        *state = State::Open;
        Ok(())
    }

    /// Returns the length of the file, as its writer sees it.
    pub(crate) fn len(&self) -> io::Result<u64> {
        let state = self.0.state.read().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Holding(held) => Ok(held.len),
            State::Open => self.0.disk.len(),
            State::Failed => Err(failed()),
        }
    }

    /// Holds `change` back, or executes it with `now`.
    fn change(
        &self,
        change: impl FnOnce() -> Change,
        now: impl FnOnce(&dyn Disk) -> io::Result<()>,
    ) -> io::Result<()> {
        {
            let state = self.0.state.read().unwrap_or_else(PoisonError::into_inner);
            if matches!(*state, State::Open) {
                return now(&*self.0.disk);
            }
        }
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Holding(held) => {
                held.push(change());
                Ok(())
            }
            State::Open => now(&*self.0.disk),
            State::Failed => Err(failed()),
        }
    }
}

fn failed() -> io::Error {
    io::Error::other("the changes of opening the journal could not be written")
}

impl Held {
    fn push(&mut self, change: Change) {
        match &change {
            Change::Write { bytes, .. } if bytes.is_empty() => return,
            Change::Write { offset, bytes } => {
                self.len = self.len.max(offset.saturating_add(bytes.len() as u64));
            }
            Change::SetLen(len) => self.len = *len,
            Change::Sync => {}
        }
        self.changes.push(change);
    }

    /// Reads the bytes at `offset` as they would be after the changes.
    fn read(&self, disk: &dyn Disk, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.fill(0);
        read_what_is_there(disk, offset, out)?;
        for change in &self.changes {
            match change {
                Change::Write { offset: at, bytes } => overlay(out, offset, bytes, *at),
                Change::SetLen(len) => {
                    let kept = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX);
                    out.iter_mut().skip(kept).for_each(|byte| *byte = 0);
                }
                Change::Sync => {}
            }
        }
        Ok(())
    }
}

/// Reads up to the end of the file and returns the number of bytes. The rest of `out`
/// stays as it is.
fn read_what_is_there(disk: &dyn Disk, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match disk.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Copies those of `bytes` that lie within `out`. `bytes` begin at `at`, and `out`
/// begins at `offset`.
fn overlay(out: &mut [u8], offset: u64, bytes: &[u8], at: u64) {
    let (Ok(skip_out), Ok(skip_bytes)) = (
        usize::try_from(at.saturating_sub(offset)),
        usize::try_from(offset.saturating_sub(at)),
    ) else {
        return;
    };
    let from = bytes.iter().skip(skip_bytes);
    for (to, from) in out.iter_mut().skip(skip_out).zip(from) {
        *to = *from;
    }
}

impl StorageBackend for HeldFile {
    fn len(&self) -> io::Result<u64> {
        HeldFile::len(self)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.state.read().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Holding(held) => held.read(&*self.0.disk, offset, out),
            State::Open if read_what_is_there(&*self.0.disk, offset, out)? == out.len() => Ok(()),
            State::Open => Err(io::ErrorKind::UnexpectedEof.into()),
            State::Failed => Err(failed()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|| Change::SetLen(len), |disk| disk.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(|| Change::Sync, Disk::sync_data)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(
            || Change::Write {
                offset,
                bytes: data.to_vec(),
            },
            |disk| disk.write_all_at(data, offset),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        SetLen(u64),
        Sync,
        Read(u64, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u64..300, prop::collection::vec(1u8.., 0..80)).prop_map(|(at, b)| Step::Write(at, b)),
            1 => (0u64..400).prop_map(Step::SetLen),
            1 => Just(Step::Sync),
            4 => (0u64..300, 0usize..120).prop_map(|(at, len)| Step::Read(at, len)),
        ]
    }

    fn files(start: &[u8]) -> [File; 2] {
        [(); 2].map(|()| {
            let file = tempfile::tempfile().unwrap();
            Disk::write_all_at(&file, start, 0).unwrap();
            file
        })
    }

    fn whole(file: &File) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn reads_as_if_written_and_writes_nothing_until_released(
            start in prop::collection::vec(1u8.., 0..200),
            steps in prop::collection::vec(step(), 0..30),
        ) {
            let [file, twin_file] = files(&start);
            let held = HeldFile::holding(file.try_clone().unwrap()).unwrap();
            let twin = HeldFile::open(twin_file.try_clone().unwrap());
            for step in steps {
                let [ours, theirs] = [&held, &twin].map(|to| match &step {
                    Step::Write(at, bytes) => to.write(*at, bytes).map(|()| Vec::new()),
                    Step::SetLen(len) => StorageBackend::set_len(to, *len).map(|()| Vec::new()),
                    Step::Sync => to.sync_data().map(|()| Vec::new()),
                    Step::Read(at, len) => {
                        let mut out = vec![9; *len];
                        to.read(*at, &mut out).map(|()| out)
                    }
                });
                prop_assert_eq!(ours.ok(), theirs.ok(), "{:?}", step);
                prop_assert_eq!(HeldFile::len(&held).unwrap(), HeldFile::len(&twin).unwrap());
                prop_assert_eq!(&whole(&file), &start);
            }
            held.release().unwrap();
            prop_assert_eq!(whole(&file), whole(&twin_file));
        }
    }

    /// A disk whose syncs fail.
    #[derive(Debug)]
    struct Unsynced(File);

    impl Disk for Unsynced {
        fn len(&self) -> io::Result<u64> {
            Disk::len(&self.0)
        }

        fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
            Disk::read_at(&self.0, out, offset)
        }

        fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
            Disk::write_all_at(&self.0, bytes, offset)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.set_len(len)
        }

        fn sync_data(&self) -> io::Result<()> {
            Err(io::Error::other("not synced"))
        }

        fn forget_cached(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A disk that reads a byte at a time. A read is interrupted before each byte, and fails
    /// at an offset.
    #[derive(Debug)]
    struct Slow {
        file: File,
        bad_offset: u64,
        interrupts: std::sync::atomic::AtomicBool,
    }

    impl Disk for Slow {
        fn len(&self) -> io::Result<u64> {
            Disk::len(&self.file)
        }

        fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
            if offset == self.bad_offset {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            let order = std::sync::atomic::Ordering::SeqCst;
            if !self.interrupts.fetch_not(order) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let byte = out.len().min(1);
            Disk::read_at(&self.file, &mut out[..byte], offset)
        }

        fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
            Disk::write_all_at(&self.file, bytes, offset)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.file.set_len(len)
        }

        fn sync_data(&self) -> io::Result<()> {
            Ok(())
        }

        fn forget_cached(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_read_goes_on_after_an_interruption_and_ends_with_another_error() {
        for (bad_offset, expected) in [(9, None), (3, Some(io::ErrorKind::PermissionDenied))] {
            let [file, _] = files(b"0123456789");
            let held = HeldFile::open(Slow {
                file,
                bad_offset,
                interrupts: false.into(),
            });
            let mut out = [0; 5];
            let read = held.read(2, &mut out);
            assert_eq!(read.map_err(|error| error.kind()).err(), expected);
            if expected.is_none() {
                assert_eq!(&out, b"23456");
            }
        }
    }

    #[test]
    fn after_a_release_that_failed_nothing_is_written() {
        let [file, _] = files(b"before");
        let held = HeldFile::holding(Unsynced(file.try_clone().unwrap())).unwrap();
        held.write(0, b"in use").unwrap();
        held.sync_data().unwrap();
        held.write(0, b"after!").unwrap();
        assert!(held.release().is_err());
        assert_eq!(whole(&file), b"in use");
        // A store that is dropped does the same.
        assert!(held.write(0, b"closed").is_err());
        assert!(StorageBackend::set_len(&held, 0).is_err());
        assert!(held.release().is_err());
        assert_eq!(whole(&file), b"in use");
    }
}
