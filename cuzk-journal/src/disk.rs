//! What is asked of a file, so that a test can stand a disk that fails in its
//! place.

use std::fs::File;
use std::io;

/// A file on a disk, behind the system's cache of its pages.
pub(crate) trait Disk: std::fmt::Debug + Send + Sync + 'static {
    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Reads some of what is at `offset`; nothing at its end.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Waits until what was written is on the disk. After an error nobody knows
    /// what is: the cache keeps pages that could not be written, and takes them
    /// for written.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes the cache let go of the pages that are not to be written, so that
    /// what is read next comes from the disk.
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
        // A length of 0 is all of it.
        posix_fadvise(self, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(Into::into)
    }

    /// Elsewhere there is no such call, or it promises nothing of the sort.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }
}
