//! An engine that is killed, again and again: what was finished stays, what is
//! missing is proved, and nothing is proved twice.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use cuzk_bounded::{BoundedChild, bounded};
use cuzk_core::Error;
use cuzk_journal::{Journal, Limits, State};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{FOLDER, config, run_child, start};
use crate::common::BoundedJob as _;
use crate::common::device::{Deed, Scripted};
use crate::common::named;

const KILLS: usize = 50;
const PARTITIONS: usize = 10;
/// How long a life is at most after the acceptance, and how much longer for each life
/// before it that finished nothing: on a slow disk, too, one comes that does.
const LIFE: Duration = Duration::from_millis(60);
/// The lives after one another that may finish nothing. The last of them may last 12 s.
const FRUITLESS_MAX: u32 = 200;

/// One life of an engine: it goes on with what is left, is asked for the job once
/// more, and says how many partitions it proved for it.
#[test]
#[ignore = "it is the other test's child"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let config = config(Path::new(&folder));
    let device = Scripted::new(&config, |_| Deed::ProveAfter(Duration::from_millis(8)));
    let engine = start(&config, &device);
    let id = std::env::var("CUZK_TEST_JOURNAL_ID").unwrap();
    let request = PARTITIONS.to_string();
    let job = engine.submit_bytes(request.as_bytes(), named(&id)).unwrap();
    println!("accepted");
    std::io::stdout().flush().unwrap();
    job.wait_bounded().unwrap();
    println!("proved {}", device.started());
    std::io::stdout().flush().unwrap();
    engine.shutdown();
}

fn spawn(folder: &Path, id: &str) -> Child {
    run_child(
        &mut Command::new(std::env::current_exe().unwrap()),
        "journal::kill::child",
        folder,
    )
    .env("CUZK_TEST_JOURNAL_ID", id)
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .unwrap()
}

/// Waits for the acceptance, lets the child live so much longer, and kills it.
/// What it said it proved, if it came that far.
fn live_and_die(folder: &Path, id: &str, longer: Duration) -> Option<usize> {
    let mut child = spawn(folder, id);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let accepted = lines.by_ref().map_while(Result::ok);
    let mut accepted = accepted.skip_while(|line| !line.ends_with("accepted"));
    let accepted = bounded(|| accepted.next());
    assert!(accepted.is_some(), "the child accepts the job");
    thread::sleep(longer);
    child.kill().unwrap();
    child.wait_bounded().unwrap();
    let proved = lines.map_while(Result::ok);
    let mut proved = proved.filter_map(|line| line.strip_prefix("proved ")?.parse().ok());
    bounded(|| proved.next())
}

/// The finished partitions of a job, or its proof.
fn recorded(folder: &Path, id: &str) -> Result<BTreeMap<u32, Vec<u8>>, Vec<u8>> {
    let journal = Journal::open(folder.join("jobs.journal"), Limits::default()).unwrap();
    match journal.state(id).unwrap() {
        Some(State::Ended(cuzk_journal::End::Done(proof))) => Err(proof),
        Some(State::Pending) => {
            let pending = journal.pending().unwrap().jobs;
            let job = pending.into_iter().find(|job| job.id == id).unwrap();
            Ok(job.finished.into_iter().collect())
        }
        other => panic!("the job was accepted, and is {other:?}"),
    }
}

#[test]
fn a_killed_engine_goes_on_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    drop(config(folder));
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let (mut kills, mut jobs, mut resumed) = (0, 0, 0);
    while kills < KILLS {
        let id = format!("sector-{jobs}");
        jobs += 1;
        let (mut known, mut fruitless) = (BTreeMap::new(), 0);
        let proof = loop {
            let before = known.len();
            let longer = rng.gen_range(Duration::ZERO..LIFE * (1 + fruitless));
            assert!(fruitless < FRUITLESS_MAX, "{id} is not proved");
            let proved = live_and_die(folder, &id, longer);
            kills += 1;
            match recorded(folder, &id) {
                Err(proof) => {
                    if let Some(proved) = proved {
                        assert_eq!(proved, PARTITIONS - before, "only what was missing");
                    }
                    break proof;
                }
                Ok(now) => {
                    for (partition, proof) in &known {
                        assert_eq!(now.get(partition), Some(proof), "{id} {partition}");
                    }
                    resumed += usize::from(!now.is_empty());
                    fruitless = if now.len() > before { 0 } else { fruitless + 1 };
                    known = now;
                }
            }
        };
        let parts: Vec<_> = proof.chunks(192).collect();
        assert_eq!(parts.len(), PARTITIONS);
        for (partition, proof) in &known {
            assert_eq!(parts[*partition as usize], proof, "{id} {partition}");
        }
    }
    println!("{kills} kills, {jobs} jobs, {resumed} lives that left something finished");
    assert!(resumed > 0);
    // The results are there for whoever asks once more.
    let config = config(folder);
    let device = Scripted::good(&config);
    let engine = start(&config, &device);
    let request = PARTITIONS.to_string();
    let job = engine
        .submit_bytes(request.as_bytes(), named("sector-0"))
        .unwrap();
    assert_eq!(job.wait_bounded().unwrap().partitions(), PARTITIONS);
    assert_eq!(device.started(), 0, "nothing is proved twice");
    let other = engine.submit_bytes(b"3", named("sector-0")).unwrap_err();
    assert!(matches!(other, Error::Conflict { .. }), "{other}");
}
