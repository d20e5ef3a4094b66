//! The rate at which the disk of the parameter cache is read, against what a proof reads.
//!
//! The system's cache is passed over where the file system lets it, since it says nothing of
//! the disk. The invariant: it takes a second, and changes nothing.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cuzk_core::circuits;
use cuzk_filecoin::CircuitId;

use super::finding::Finding;

const TOPIC: &str = "disk";

/// How long the disk is read.
const TIME: Duration = Duration::from_secs(1);

/// The bytes of one read.
const READ_BYTES: usize = 4 << 20;

/// A file that is smaller says nothing of the disk.
const FILE_BYTES_MIN: u64 = 32 << 20;

/// The rate below which parameters of 44 GiB take more than a minute and a half.
const RATE_MIN: f64 = 500e6;

/// Addresses and places of a read that passes the cache over are multiples of this.
const ALIGNMENT: usize = 4096;

/// Linux's flag for reads that pass the cache over.
#[cfg(target_arch = "x86_64")]
const O_DIRECT: Option<i32> = Some(0o40000);
#[cfg(target_arch = "aarch64")]
const O_DIRECT: Option<i32> = Some(0o200_000);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const O_DIRECT: Option<i32> = None;

/// A rate that was measured.
#[derive(Clone, Copy, Debug)]
struct Rate {
    bytes_per_s: f64,
    /// True if the system's cache was passed over.
    is_direct: bool,
}

pub(super) fn examine(param_cache: &Path, ids: &[CircuitId]) -> Finding {
    let Some((path, bytes)) = largest(param_cache, ids) else {
        let text =
            "not measured: there are no parameters that are large enough to read for a second";
        return Finding::ok(TOPIC, text);
    };
    match measure(&path, TIME) {
        Ok(rate) => judge(&path, bytes, rate),
        Err(error) => {
            let text = format!("{}: {error}", path.display());
            Finding::error(TOPIC, text, "let the user of the daemon read the file")
        }
    }
}

/// Returns the largest file of parameters with its length, if it is large enough.
fn largest(param_cache: &Path, ids: &[CircuitId]) -> Option<(PathBuf, u64)> {
    let files = ids.iter().filter_map(|id| {
        let path = param_cache.join(circuits::parameter_files(*id).ok()?.params);
        let bytes = path.metadata().ok()?.len();
        Some((path, bytes))
    });
    let largest = files.max_by_key(|(_, bytes)| *bytes);
    largest.filter(|(_, bytes)| *bytes >= FILE_BYTES_MIN)
}

fn judge(path: &Path, bytes: u64, rate: Rate) -> Finding {
    let seconds = bytes as f64 / rate.bytes_per_s;
    let how = match rate.is_direct {
        true => "from the disk",
        false => "by way of the system's cache",
    };
    let text = format!(
        "reads {:.0} MB/s {how}: all of {} in {seconds:.1} s",
        rate.bytes_per_s / 1e6,
        path.file_name().unwrap_or_default().display()
    );
    if rate.bytes_per_s < RATE_MIN {
        let advice = "a first proof reads all parameters, and so does every partition if they do \
                      not fit into memory: put [srs] param_cache on a faster disk";
        return Finding::warning(TOPIC, text, advice);
    }
    Finding::ok(TOPIC, text)
}

/// Reads pieces from all over a file for a while.
fn measure(path: &Path, time: Duration) -> io::Result<Rate> {
    let direct = O_DIRECT.and_then(|flag| {
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(flag).open(path).ok()?;
        // A file system can take the flag and refuse the read.
        let mut buffer = Aligned::new();
        file.read_at(buffer.bytes(), 0).ok()?;
        Some(file)
    });
    let is_direct = direct.is_some();
    let file = match direct {
        Some(file) => file,
        None => File::open(path)?,
    };
    let pieces = (file.metadata()?.len() / READ_BYTES as u64).max(1);
    let mut buffer = Aligned::new();
    let (started, mut read) = (Instant::now(), 0);
    for piece in 0_u64.. {
        // A stride that meets each piece once before it meets one again.
        let place = piece.wrapping_mul(7919) % pieces * READ_BYTES as u64;
        read += file.read_at(buffer.bytes(), place)?;
        if started.elapsed() >= time {
            break;
        }
    }
    let bytes_per_s = read as f64 / started.elapsed().as_secs_f64();
    Ok(Rate {
        bytes_per_s,
        is_direct,
    })
}

/// A buffer whose address suits a read that passes the cache over.
struct Aligned {
    memory: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new() -> Self {
        let memory = vec![0; READ_BYTES + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { memory, start }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..READ_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_slow_disk_is_told_with_what_it_costs() {
        let rate = |bytes_per_s| Rate {
            bytes_per_s,
            is_direct: true,
        };
        let path = Path::new("/params/v28.params");
        let slow = judge(path, 44 << 30, rate(100e6));
        assert_eq!(slow.level, Level::Warning);
        assert!(
            slow.text
                .starts_with("reads 100 MB/s from the disk: all of v28.params in 472.4 s")
        );
        assert_eq!(judge(path, 44 << 30, rate(3e9)).level, Level::Ok);
    }

    #[test]
    fn a_file_is_read_and_a_missing_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("params");
        std::fs::write(&path, vec![7; 9 << 20]).unwrap();
        let rate = measure(&path, Duration::from_millis(20)).unwrap();
        assert!(rate.bytes_per_s > 0.0);
        assert!(measure(&folder.path().join("no"), TIME).is_err());
        let mut buffer = Aligned::new();
        assert_eq!(buffer.bytes().as_ptr().align_offset(ALIGNMENT), 0);
    }
}
