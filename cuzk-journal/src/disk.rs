//! The operations on a file, as a trait, so that a test can use a disk that fails.

use std::fs::File;
use std::io;

/// A file on a disk, behind the system's cache of its pages.
pub(crate) trait Disk: std::fmt::Debug + Send + Sync + 'static {
    /// Returns its length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Reads some of the bytes at `offset`; returns 0 at the end of the file.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Waits until all written bytes are on the disk. After an error nobody knows which
    /// bytes are there: the cache keeps pages that could not be written, and marks them
    /// as written.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes the cache drop the pages that need no writing, so that the next read comes
    /// from the disk.
    fn forget_cached(&self) -> io::Result<()>;
}

impl Disk for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, out, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn forget_cached(&self) -> io::Result<()> {
        use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
        // A length of 0 means the whole file.
        posix_fadvise(self, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(Into::into)
    }

    /// Does nothing: other systems have no such call, or it promises nothing of the
    /// kind.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }
}
