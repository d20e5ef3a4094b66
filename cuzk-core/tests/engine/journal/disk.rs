//! A disk that is full: a submission that cannot be kept is refused, and what was
//! accepted is neither lost nor held up.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use cuzk_bounded::{BoundedCommand, bounded};
use cuzk_core::Error;
use cuzk_core::job::JobHandle;
use cuzk_journal::{Journal, JournalError, Limits};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{FOLDER, config, run_child, start};
use crate::common::device::{Deed, Opened, Scripted};
use crate::common::{self, MOMENTS, named, tiny};

/// The longest file that the child may write, in blocks of 512 bytes.
const FILE_BLOCKS: &str = "8192";

/// Two partitions, and what no compression makes smaller than half of it.
fn request(job: usize) -> Vec<u8> {
    let mut noise = vec![0; 128 << 10];
    ChaCha8Rng::seed_from_u64(job as u64).fill_bytes(&mut noise);
    let noise: String = noise.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("2\n{noise}").into_bytes()
}

fn id(job: usize) -> String {
    format!("sector-{job}")
}

/// Submits until one is refused, while the device stands still, and says what
/// becomes of all of them.
#[test]
#[ignore = "it is the other test's child"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let config = config(Path::new(&folder));
    let device = Scripted::new(&config, |_| Deed::Stall);
    let engine = start(&config, &device);
    let device = Opened(device);
    let submit = |job| engine.submit_bytes(&request(job), named(&id(job)));
    let mut accepted: Vec<JobHandle> = Vec::new();
    let error = bounded(|| {
        loop {
            match submit(accepted.len()) {
                Ok(job) => accepted.push(job),
                Err(error) => break error,
            }
        }
    });
    let is_stores = matches!(error, Error::Journal(JournalError::Store { .. }));
    assert!(is_stores && !error.is_input(), "{error}");
    // It has no place under its id, and the journal says no from now on.
    let refused = accepted.len();
    assert!(engine.job(&id(refused)).is_none());
    assert!(submit(refused).is_err());
    // What was accepted is proved, and what need not be kept is accepted.
    device.gate.open();
    for job in &accepted {
        let proof = job.wait_for(MOMENTS).unwrap().unwrap();
        assert_eq!(proof.partitions(), 2);
    }
    let unkept = common::submit(&engine, tiny::job(cuzk_filecoin::ProofKind::Porep, 1));
    unkept.wait_for(MOMENTS).unwrap().unwrap();
    engine.shutdown();
    println!("accepted {refused}");
}

#[test]
fn a_full_disk_refuses_what_it_cannot_keep_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    let config = config(folder);
    // A write beyond the limit fails, as on a full disk, since its signal is ignored.
    let limited = r#"trap '' XFSZ; ulimit -f "$1"; shift; exec "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", limited, "sh", FILE_BLOCKS]);
    command.arg(std::env::current_exe().unwrap());
    let child = run_child(&mut command, "journal::disk::child", folder);
    let child = child.stderr(Stdio::inherit()).output_bounded().unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    assert!(child.status.success(), "{said}");
    let accepted = said.lines().find_map(|line| line.split_once("accepted "));
    let accepted: usize = accepted.unwrap().1.parse().unwrap();
    assert!(accepted > 1, "{accepted}");

    let journal = Journal::open(folder.join("jobs.journal"), Limits::default()).unwrap();
    let pending = journal.pending().unwrap();
    assert!(pending.damaged.is_empty());
    let pending: BTreeSet<_> = pending.jobs.into_iter().map(|job| job.id).collect();
    for job in 0..accepted {
        assert!(journal.state(&id(job)).unwrap().is_some(), "{job} is lost");
    }
    // Of the refused one nobody can say; it was not told to be there.
    let known: BTreeSet<_> = (0..=accepted).map(id).collect();
    assert!(pending.is_subset(&known), "{pending:?}");
    drop(journal);

    // With room on the disk everything goes on, the refused one too.
    let device = Scripted::good(&config);
    let engine = start(&config, &device);
    for job in 0..=accepted {
        let handle = engine.submit_bytes(&request(job), named(&id(job))).unwrap();
        let proof = handle.wait_for(MOMENTS).unwrap().unwrap();
        assert_eq!(proof.partitions(), 2, "{job}");
    }
    engine.shutdown();
}
