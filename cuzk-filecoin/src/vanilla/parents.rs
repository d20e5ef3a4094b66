//! The files with the parents of a sector's graph, which the proofs library keeps from one sector
//! to the next.
//!
//! Not the graph: the library makes and reads these files. It writes a file in place, and trusts
//! each that is there. So the file of a program that was killed has its full length and pages of
//! zeros, and no later sector's proof verifies. The invariant: a damaged file is removed before a
//! sector of its size is sealed, and the library makes it again.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::sector_size::SectorSize;

/// Sizes that are sealed here, with the names and SHA-256 of their files: `parent_cache.json` of
/// storage-proofs-porep. A size has one file for the first version of the graph, and one for the
/// later versions.
const FILES: [(SectorSize, &str, &str); 4] = [
    (
        SectorSize::KiB2,
        "v28-sdr-parent-3f0eef38bb48af1f48ad65e14eb85b4ebfc167cec18cd81764f6d998836c9899.cache",
        "3da49221e2ed55371b86d0bf3d6526fcf128af61bed904f966428db1b531750d",
    ),
    (
        SectorSize::KiB2,
        "v28-sdr-parent-494d91dc80f2df5272c4b9e129bc7ade9405225993af9fe34e6542a39a47554b.cache",
        "840057702eea7652cf97e04306c30fe57174714d90de156a25eddd6075c25b97",
    ),
    (
        SectorSize::MiB8,
        "v28-sdr-parent-5eed212119fd91aa6220a27f31a8966444a9381842bceb3a1ea61525bd47a5b5.cache",
        "03cd13565ded97c240a5f52e54295ad127bd0461b57904cb3a4d79b097bbecab",
    ),
    (
        SectorSize::MiB8,
        "v28-sdr-parent-dcdabb0fbe4364bf0ac28b6a18c66de246409fa1a9020a00f33fb3e3053da6dc.cache",
        "a76604f2f59f2744c7151653bbb1d8596b6b57d295e6fa6c1f0c41d725b502ce",
    ),
];

/// Removes the files of a size from the library's directory whose bytes are not those of the list.
///
/// # Errors
/// [`Error::Io`] if one can neither be read nor removed.
pub(super) fn remove_damaged(directory: &Path, size: SectorSize) -> Result<(), Error> {
    for (_, name, digest) in FILES.iter().filter(|(of, ..)| *of == size) {
        let path = directory.join(name);
        if is_damaged(&path, digest).map_err(|error| Error::io(&path, error))? {
            tracing::warn!(file = %path.display(), "a damaged file of parents is made again");
            fs::remove_file(&path).map_err(|error| Error::io(&path, error))?;
        }
    }
    Ok(())
}

/// Waits for a program that writes the file: the library locks it meanwhile.
fn is_damaged(path: &Path, digest: &str) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    file.lock_shared()?;
    let mut hasher = Sha256::new();
    io::copy(&mut file, &mut hasher)?;
    Ok(format!("{:x}", hasher.finalize()) != digest)
}

#[cfg(test)]
mod tests {
    use filecoin_proofs::parameters::public_params;

    use super::*;
    use crate::library_settings::library_settings;
    use crate::registered::seal_proof;
    use crate::tree::BaseTree;

    /// A file as a program leaves it that was killed while it made it.
    #[test]
    fn a_file_that_was_not_finished_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        for (size, name, _) in FILES {
            let path = directory.path().join(name);
            fs::write(&path, [0; 64 * 56]).unwrap();
            remove_damaged(directory.path(), SectorSize::GiB32).unwrap();
            assert!(path.exists());
            remove_damaged(directory.path(), size).unwrap();
            assert!(!path.exists(), "{name}");
        }
    }

    /// The list has the file that the library makes, and its digest.
    #[test]
    fn a_whole_file_stays() {
        let made = Path::new(&library_settings().unwrap().parent_cache);
        remove_damaged(made, SectorSize::KiB2).unwrap();
        // The part of a seal that makes the file. A whole seal would be compiled for this test alone.
        let proof = seal_proof(SectorSize::KiB2).as_v1_config();
        let graph = public_params::<BaseTree>(&proof).unwrap().graph;
        graph.parent_cache().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut whole = 0;
        for (size, name, _) in FILES.iter().filter(|(size, ..)| *size == SectorSize::KiB2) {
            let path = directory.path().join(name);
            if fs::copy(made.join(name), &path).is_ok() {
                remove_damaged(directory.path(), *size).unwrap();
                assert!(path.exists(), "{name}");
                whole += 1;
            }
        }
        assert!(whole > 0, "a file of the list is in {}", made.display());
    }
}
