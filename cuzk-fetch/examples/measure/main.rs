//! The cost of a fetch beside curl and b2sum: `measure FOLDER [MIB [ROUNDS]]`.
//!
//! Makes eight files of MIB together (1,024 without it) in FOLDER, and serves them on this
//! machine. In each round, three ways bring all of them, one after the other:
//!
//! * curl, then b2sum;
//! * `fetch`, from a server that cuts 20 connections;
//! * `fetch`, from that server, one that sends wrong bytes, and one that is slow.
//!
//! Prints the machine, the times, their ratio, and the bytes that came twice. FOLDER needs room for three
//! times MIB.

mod server;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use cuzk_fetch::{Digests, ListedFile, Options, Source, fetch, file_digest};
use cuzk_tune::machine::Host;

use server::{Manner, Server};

const FILES: usize = 8;
/// The instructions of a digest.
const DIGEST: &str = "of blake2b_simd";
const CUTS: usize = 20;
/// The slow server's rate.
const SLOW_BYTES_PER_S: u64 = 4 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments
        .next()
        .ok_or("usage: measure FOLDER [MIB [ROUNDS]]")?;
    let mut number = |default: usize| -> Result<usize, Box<dyn Error>> {
        let text = arguments.next().map(|text| text.into_string());
        match text.transpose().map_err(|_| "not a number")? {
            Some(text) => Ok(text.parse()?),
            None => Ok(default),
        }
    };
    let (mib, rounds) = (number(1024)?, number(3)?);
    let scratch = tempfile::tempdir_in(folder)?;
    let from = scratch.path().join("from");
    let files = make(&from, (mib << 20) / FILES)?;
    println!("{}", Host::read(Path::new("/"), DIGEST));
    for round in 1..=rounds {
        let by_curl = curl(&from, scratch.path())?;
        println!(
            "round {round}: curl and b2sum {:.2} s",
            by_curl.as_secs_f64()
        );
        for manners in [
            vec![Manner::Cuts(CUTS)],
            vec![
                Manner::Cuts(CUTS),
                Manner::Wrong,
                Manner::Slow(SLOW_BYTES_PER_S),
            ],
        ] {
            fetched(&from, scratch.path(), &files, &manners, by_curl)?;
        }
    }
    Ok(())
}

/// Makes files of so many bytes each, and returns their list.
fn make(folder: &Path, length: usize) -> Result<Vec<ListedFile>, Box<dyn Error>> {
    fs::create_dir(folder)?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut entries = Vec::new();
    for number in 0..FILES {
        let name = format!("v28-made-{number}.params");
        let mut file = BufWriter::with_capacity(1 << 20, File::create(folder.join(&name))?);
        for _ in 0..length / 8 {
            // Xorshift: bytes that no disk can compress.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            file.write_all(&state.to_le_bytes())?;
        }
        file.into_inner()?.sync_all()?;
        let digest = file_digest(&folder.join(&name), |_| true)?;
        entries.push(format!(
            r#""{name}": {{"cid": "Qm{number}", "digest": "{digest}", "sector_size": 2048}}"#
        ));
    }
    let list = Digests::parse(&format!("{{{}}}", entries.join(",")))?;
    Ok(list.files().cloned().collect())
}

/// Brings all files with curl, and hashes them with b2sum.
fn curl(from: &Path, scratch: &Path) -> Result<Duration, Box<dyn Error>> {
    let server = Server::start(from, Manner::Cuts(0))?;
    let into = scratch.join("by-curl");
    fs::create_dir(&into)?;
    let started = Instant::now();
    for path in names(from)? {
        let name = path.file_name().ok_or("a file without a name")?;
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--fail", "--output"])
            .arg(into.join(name));
        run(curl.arg(format!("{}{}", server.url(), name.display())))?;
    }
    let mut hash = Command::new("b2sum");
    run(hash.args(names(&into)?).stdout(std::process::Stdio::null()))?;
    let time = started.elapsed();
    fs::remove_dir_all(into)?;
    Ok(time)
}

fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}

fn names(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = fs::read_dir(folder)?;
    let mut names = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    names.sort();
    Ok(names)
}

/// Fetches all files from servers of these manners, and prints what it took.
fn fetched(
    from: &Path,
    scratch: &Path,
    files: &[ListedFile],
    manners: &[Manner],
    by_curl: Duration,
) -> Result<(), Box<dyn Error>> {
    let servers = manners.iter().map(|manner| Server::start(from, *manner));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let sources = servers.iter().map(|server| server.url().parse::<Source>());
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let into = scratch.join("by-fetch");
    let started = Instant::now();
    let options = Options::new(into.clone(), sources);
    let report = fetch(files, options, &AtomicBool::new(false), &mut ())?;
    let time = started.elapsed();
    if !report.is_complete() {
        return Err(format!("{report:?}").into());
    }
    for (made, came) in names(from)?.iter().zip(files) {
        if file_digest(&into.join(&came.name), |_| true)? != file_digest(made, |_| true)? {
            return Err(format!("{} is wrong", came.name).into());
        }
    }
    fs::remove_dir_all(into)?;
    let ratio = by_curl.as_secs_f64() / time.as_secs_f64();
    println!(
        "  fetch from {} server(s) {:.2} s: {:.0} % of the rate of curl and b2sum",
        servers.len(),
        time.as_secs_f64(),
        100.0 * ratio
    );
    // Bytes of a wrong server come again from others.
    let right = servers.iter().filter(|server| !server.is_wrong());
    let ranges = right.flat_map(Server::sent).collect();
    let cut = servers.iter().map(Server::cuts).sum::<usize>();
    println!(
        "  {cut} connections were cut; {} bytes were sent twice",
        repeated(ranges)
    );
    Ok(())
}

/// Returns the number of bytes that are in more than one range.
fn repeated(mut ranges: Vec<(String, u64, u64)>) -> u64 {
    ranges.sort();
    let (mut of, mut reached, mut bytes) = (String::new(), 0, 0);
    for (name, start, end) in ranges {
        if name != of {
            (of, reached) = (name, 0);
        }
        bytes += reached.min(end).saturating_sub(start);
        reached = reached.max(end);
    }
    bytes
}
