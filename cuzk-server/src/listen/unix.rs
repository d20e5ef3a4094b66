//! Unix sockets.
//!
//! Not those that systemd hands over. The invariants: nobody can connect to a socket
//! before it has its permissions, and only a socket that nobody listens on is replaced.

use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use cuzk_core::config::Address;
use cuzk_core::error::ErrorCode;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind as bind_socket, connect, listen,
    socket,
};
use nix::unistd::Group;

use super::error::{ListenError, lacks_files};

/// How often, and how far apart, the lock of a folder is tried.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// The file of a socket. It is removed at the end, if it is still the same file.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = |file: &Metadata| file.dev() == self.device && file.ino() == self.inode;
        if fs::symlink_metadata(&self.path).is_ok_and(|file| is_ours(&file)) {
            // Nobody is left to tell. The next start replaces the file.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Returns a socket that listens at a path, with the configured mode and group.
///
/// # Errors
///
/// Another process listens there, the path is no socket, or the group does not exist.
pub(crate) fn bind(
    key: &'static str,
    path: &Path,
    mode: u32,
    group: Option<&str>,
) -> Result<(UnixListener, SocketFile), ListenError> {
    let group = group.map(self::group).transpose()?;
    let failed = |source: io::Error| bind_error(key, path, source);
    // Two daemons that start at once must not both take a stale socket for theirs.
    let _lock = lock(path).map_err(failed)?;
    clear(key, path)?;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = stream(flags).map_err(failed)?;
    let address = UnixAddr::new(path).map_err(|errno| failed(errno.into()))?;
    bind_socket(socket.as_raw_fd(), &address).map_err(|errno| failed(errno.into()))?;
    let bound = fs::symlink_metadata(path).map_err(failed)?;
    let file = SocketFile {
        path: path.to_owned(),
        device: bound.dev(),
        inode: bound.ino(),
    };
    // The system refuses connections until `listen`, so nobody comes before the mode.
    permit(path, mode, group).map_err(|source| ListenError::Permissions {
        path: path.to_owned(),
        source,
    })?;
    listen(&socket, Backlog::MAXALLOWABLE).map_err(|errno| failed(errno.into()))?;
    Ok((UnixListener::from(socket), file))
}

fn stream(flags: SockFlag) -> io::Result<std::os::fd::OwnedFd> {
    Ok(socket(AddressFamily::Unix, SockType::Stream, flags, None)?)
}

pub(super) fn bind_error(key: &'static str, path: &Path, source: io::Error) -> ListenError {
    let address = Address::Unix(path.to_owned()).to_string();
    match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse { key, address },
        kind => ListenError::Bind {
            key,
            address,
            advice: match kind {
                _ if lacks_files(&source) => ErrorCode::OpenFiles.remedy(),
                io::ErrorKind::NotFound => "make its folder or write another path",
                io::ErrorKind::PermissionDenied => {
                    "let the daemon's user write into its folder or write another path"
                }
                _ => "write another path",
            },
            source,
        },
    }
}

/// Locks the folder of a path, for as long as the returned file is there.
fn lock(path: &Path) -> io::Result<File> {
    let folder = File::open(path.parent().unwrap_or(Path::new("/")))?;
    for _ in 1..LOCK_TRIES {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        "another process has locked its folder",
    ))
}

/// Removes a socket that nobody listens on.
fn clear(key: &'static str, path: &Path) -> Result<(), ListenError> {
    let failed = |source: io::Error| bind_error(key, path, source);
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !found.file_type().is_socket() {
        let path = path.to_owned();
        return Err(ListenError::NotASocket { key, path });
    }
    let address = UnixAddr::new(path).map_err(|errno| failed(errno.into()))?;
    let probe = stream(SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK).map_err(failed)?;
    match connect(probe.as_raw_fd(), &address) {
        // The one answer of a socket whose process is gone.
        Err(Errno::ECONNREFUSED) => fs::remove_file(path).map_err(failed),
        // Whatever else it is, it is somebody's: a full queue, or no permission to connect.
        _ => Err(failed(io::ErrorKind::AddrInUse.into())),
    }
}

/// Returns the number of a group.
pub(super) fn group(name: &str) -> Result<u32, ListenError> {
    let found = Group::from_name(name).ok().flatten();
    let group = found.ok_or_else(|| ListenError::NoGroup {
        group: name.to_owned(),
    })?;
    Ok(group.gid.as_raw())
}

fn permit(path: &Path, mode: u32, group: Option<u32>) -> io::Result<()> {
    if group.is_some() {
        lchown(path, None, group)?;
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}
