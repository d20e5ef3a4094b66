//! Opening and creating the file of a journal.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cuzk_files::Draft;

use crate::JournalError;
use crate::check::{self, Checked, check_magic, open_store};
use crate::disk::Disk;
use crate::held::HeldFile;
use crate::row::seal;
use crate::store::{Opened, guard};
use crate::tables::{FORMAT, FORMAT_KEY, META, Tables};

/// The ratio of a file's length to its contents above which opening compacts it. The
/// file must also have at least [`COMPACT_BYTES_MIN`].
const COMPACT_RATIO: u64 = 4;
const COMPACT_BYTES_MIN: u64 = 64 << 20;

impl From<Checked> for Opened {
    fn from(checked: Checked) -> Self {
        Self {
            database: checked.database,
            totals: checked.totals,
            usage: checked.usage,
        }
    }
}

pub(crate) fn exists(path: &Path) -> bool {
    !matches!(path.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// Fails for a folder, before anything is created beside it.
pub(crate) fn check_is_no_folder(path: &Path) -> Result<(), JournalError> {
    if path.is_dir() {
        return Err(JournalError::Foreign {
            path: path.to_owned(),
            what: "it is a folder".to_owned(),
        });
    }
    Ok(())
}

/// Opens the store on `disk` and checks it before anything is written to it. Reads the
/// disk, and not the system's cache. `path` is for messages.
pub(crate) fn open_checked(
    path: &Path,
    disk: impl Disk,
) -> Result<(HeldFile, Checked), JournalError> {
    forget_cached(path, &disk);
    let file = HeldFile::holding(disk)
        .map_err(|error| JournalError::io(path, "read the length", error))?;
    check_magic(path, &file)?;
    let checked = check::open(path, file.clone())?;
    file.release()
        .map_err(|error| JournalError::io(path, "write", error))?;
    Ok((file, checked))
}

/// Makes the system's cache drop the file's pages. After a failed sync, of this process
/// or of a killed one, the cache can hold bytes that will never be on the disk. A check
/// that read those would pass, and the next power cut would leave a damaged file.
fn forget_cached(path: &Path, disk: &impl Disk) {
    // The cache drops only pages that need no writing. Pages that this sync cannot
    // write are marked as written, so they are dropped with the others.
    let _ = disk.sync_data();
    if let Err(error) = disk.forget_cached() {
        warn_of(
            path,
            &error,
            "the check of the journal may read the system's cache instead of the disk",
        );
    }
}

/// Logs an action that was left undone.
pub(crate) fn warn_of(path: &Path, error: &dyn std::fmt::Display, what: &str) {
    let path = path.display();
    tracing::warn!(%path, %error, "{what}");
}

/// Creates an empty journal, which is whole before it gets its name.
pub(crate) fn create(path: &Path) -> Result<(), JournalError> {
    let failed = |error| JournalError::io(path, "create", error);
    let draft = Draft::begin(path).map_err(failed)?;
    // Only the owner may read it, whatever the umask is.
    let owners = Permissions::from_mode(0o600);
    draft.file().set_permissions(owners).map_err(failed)?;
    let file = HeldFile::open(draft.file().try_clone().map_err(failed)?);
    guard(|| {
        let database = open_store(file).map_err(JournalError::store)?;
        let transaction = database.begin_write().map_err(JournalError::store)?;
        {
            let mut meta = transaction.open_table(META).map_err(JournalError::store)?;
            let key = FORMAT_KEY.as_bytes();
            let format = seal(key, FORMAT.to_le_bytes().to_vec());
            meta.insert(key, format.as_slice())
                .map_err(JournalError::store)?;
            Tables::open(&transaction)?;
        }
        transaction.commit().map_err(JournalError::store)
    })
    .map_err(|error| error.at(path))?;
    draft.publish_new().map_err(failed)
}

/// Compacts the file if ended jobs left much free space in it. While the journal is
/// open, other jobs use that space.
pub(crate) fn compact(
    path: &Path,
    file: &HeldFile,
    checked: &mut Checked,
) -> Result<(), JournalError> {
    let file_bytes = file
        .len()
        .map_err(|error| JournalError::io(path, "read the length", error))?;
    let wanted = checked.stored_bytes.saturating_mul(COMPACT_RATIO);
    if file_bytes < COMPACT_BYTES_MIN.max(wanted) {
        return Ok(());
    }
    guard(|| {
        checked
            .database
            .compact()
            .map(|_| ())
            .map_err(JournalError::store)
    })
    .map_err(|error| error.at(path))
}
