//! A file whose changes are held back until somebody trusts it.
//!
//! Opening a store writes to it: a mark that it is in use, and after a crash
//! what recovery rebuilds. A damaged file must be left as it was found, so
//! while it is being opened and checked every write stays in memory, in order,
//! and reads see them. [`HeldFile::release`] writes them out with the same
//! syncs between them; without it they are never written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, PoisonError, RwLock};

use redb::StorageBackend;

/// A file, shared between the store and whoever decides about it.
#[derive(Clone, Debug)]
pub(crate) struct HeldFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: File,
    /// `None` once released.
    held: RwLock<Option<Held>>,
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
    /// Holds back what is written to `file`.
    pub(crate) fn holding(file: File) -> io::Result<Self> {
        let held = Held {
            changes: Vec::new(),
            len: file.metadata()?.len(),
        };
        Ok(Self::new(file, Some(held)))
    }

    /// Holds back nothing.
    pub(crate) fn open(file: File) -> Self {
        Self::new(file, None)
    }

    fn new(file: File, held: Option<Held>) -> Self {
        Self(Arc::new(Inner {
            file,
            held: RwLock::new(held),
        }))
    }

    /// Writes out what was held back, and everything after it at once.
    pub(crate) fn release(&self) -> io::Result<()> {
        let mut held = self.0.held.write().unwrap_or_else(PoisonError::into_inner);
        for change in held.take().into_iter().flat_map(|held| held.changes) {
            match change {
                Change::Write { offset, bytes } => self.0.file.write_all_at(&bytes, offset)?,
                Change::SetLen(len) => self.0.file.set_len(len)?,
                Change::Sync => self.0.file.sync_data()?,
            }
        }
        Ok(())
    }

    /// The length of the file, as its writer sees it.
    pub(crate) fn len(&self) -> io::Result<u64> {
        let held = self.0.held.read().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            Some(held) => Ok(held.len),
            None => Ok(self.0.file.metadata()?.len()),
        }
    }

    /// Holds `change` back, or does it with `now`.
    fn change(
        &self,
        change: impl FnOnce() -> Change,
        now: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        {
            let held = self.0.held.read().unwrap_or_else(PoisonError::into_inner);
            if held.is_none() {
                return now(&self.0.file);
            }
        }
        let mut held = self.0.held.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *held {
            Some(held) => {
                held.push(change());
                Ok(())
            }
            None => now(&self.0.file),
        }
    }
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

    /// What the file would hold at `offset`.
    fn read(&self, file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.fill(0);
        read_what_is_there(file, offset, out)?;
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

/// Reads up to the end of the file; the rest of `out` stays as it is.
fn read_what_is_there(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Copies the part of `bytes`, which begin at `at`, that lies within `out`,
/// which begins at `offset`.
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
        let held = self.0.held.read().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            Some(held) => held.read(&self.0.file, offset, out),
            None => self.0.file.read_exact_at(out, offset),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|| Change::SetLen(len), |file| file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(|| Change::Sync, File::sync_data)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(
            || Change::Write {
                offset,
                bytes: data.to_vec(),
            },
            |file| file.write_all_at(data, offset),
        )
    }
}

#[cfg(test)]
mod tests {
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
            file.write_all_at(start, 0).unwrap();
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
            let [file, twin] = files(&start);
            let held = HeldFile::holding(file.try_clone().unwrap()).unwrap();
            let twin = HeldFile::open(twin);
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
            prop_assert_eq!(whole(&file), whole(&twin.0.file));
        }
    }
}
