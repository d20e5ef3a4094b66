//! A tar archive of a few small files, in the form of POSIX (ustar).
//!
//! Not a general writer: names are short and ASCII, and there are no folders but one.

const BLOCK: usize = 512;

/// Returns the archive of `files`, each in `folder`, with this time of change.
pub(super) fn archive<'a>(
    folder: &str,
    files: impl Iterator<Item = (&'a str, &'a [u8])>,
    modified_s: u64,
) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in files {
        let name = format!("{folder}/{name}");
        archive.extend(header(&name, content.len(), modified_s));
        archive.extend_from_slice(content);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

fn header(name: &str, bytes: usize, modified_s: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &str| {
        header[at..][..text.len()].copy_from_slice(text.as_bytes());
    };
    put(0, &name[..name.len().min(99)]);
    put(100, "0000600\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{bytes:011o}\0"));
    put(136, &format!("{:011o}\0", modified_s.min(0o77_777_777_777)));
    // The checksum is taken with spaces in its own place.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_systems_program_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        let long = vec![b'x'; 1000];
        let files = [("one.txt", &b"one\n"[..]), ("empty", b""), ("long", &long)];
        std::fs::write(&path, archive("top", files.into_iter(), 1_700_000_000)).unwrap();
        let mut tar = Command::new("tar");
        let tar = tar.arg("xf").arg(&path).current_dir(folder.path());
        assert!(tar.status().unwrap().success());
        for (name, content) in files {
            let read = std::fs::read(folder.path().join("top").join(name)).unwrap();
            assert_eq!(read, content, "{name}");
        }
    }
}
