//! Commands and a daemon on a disk that is really full: a small file system in memory. Only the
//! command sees it, because it has mounts of its own.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_core::circuits;
use cuzk_core::error::ErrorCode::{self, JournalFailing, Output as FullDisk};
use cuzk_fetch::Digest;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use tempfile::TempDir;

/// Long enough for anything that ends at all, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// The variable of the parameter cache, and one that no command reads.
const CACHE: &str = "FIL_PROOFS_PARAMETER_CACHE";
const NONE: &str = "NO_FOLDER_OF_A_COMMAND";

/// Programs that give a command mounts of its own. The first needs to be root.
const ENTER: [&[&str]; 2] = [
    &["unshare", "--mount"],
    &["unshare", "--map-root-user", "--mount"],
];

/// Makes a file system of `$2` bytes at `$1`, and runs the rest.
const MOUNT: &str = "disk=$1; size=$2; shift 2\n\
                     mount -t tmpfs -o \"size=$size\" none \"$disk\" || exit 125\n";

/// Runs a command, and lists the files that are there after it. Before that it puts links there to
/// the files of the folder `LINKED`, if that is set, and fills the rest, if `FULL` is.
const RUN: &str = "[ -z \"$LINKED\" ] || ln -s \"$LINKED\"/* \"$disk\"\n\
                   [ -z \"$FULL\" ] || cat /dev/zero > \"$disk/fill\" 2> /dev/null\n\
                   \"$@\"\n\
                   code=$?\n\
                   cd \"$disk\" && find . -type f -exec stat -c '%s %n' {} + > \"$disk.files\"\n\
                   exit $code\n";

/// Runs a command in its place. It keeps its number.
const START: &str = "exec \"$@\"\n";

/// A place for a small disk, in a folder on the large one.
struct Disk {
    folder: TempDir,
    enter: &'static [&'static str],
}

/// The end of a command that used the disk.
struct Ran {
    output: Output,
    /// The regular files that are on the disk, with their lengths, without the one that filled
    /// it.
    files: Vec<(u64, String)>,
}

impl Disk {
    /// Returns none where no command can have mounts of its own, and says so.
    fn new(test: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("disk")).unwrap();
        let can_enter = |enter: &&[&str]| {
            let disk = Self {
                folder: tempfile::tempdir().unwrap(),
                enter: ENTER[0],
            };
            std::fs::create_dir(disk.path("")).unwrap();
            let tried = disk.command(enter, START, 4096, &["true"]).output();
            tried.is_ok_and(|output| output.status.success())
        };
        let Some(enter) = ENTER.into_iter().find(can_enter) else {
            let line = format!("skipped, it needs to mount a file system: {test}\n");
            // The harness keeps back what `eprintln!` writes.
            drop(std::io::stderr().write_all(line.as_bytes()));
            return None;
        };
        Some(Self { folder, enter })
    }

    /// Returns a path on the small disk.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("disk").join(name)
    }

    /// Returns a path beside it.
    fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, enter: &[&str], script: &str, bytes: u64, arguments: &[&str]) -> Command {
        let (program, options) = enter.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(options).args(["sh", "-c"]);
        command.arg(format!("{MOUNT}{script}")).arg("sh");
        command.arg(self.folder.path().join("disk"));
        command.arg(bytes.to_string()).args(arguments);
        command.env("LC_ALL", "C").env_remove("IPFS_GATEWAY");
        command.env_remove("FULL").env_remove("LINKED");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program. The folder of the variable `on_disk` is on the disk.
    fn run(&self, begin: Begin, on_disk: &str, arguments: &[&str]) -> Ran {
        let arguments = [&[env!("CARGO_BIN_EXE_cuzk")], arguments].concat();
        let bytes = match begin {
            Begin::Empty(bytes) => bytes,
            Begin::Full | Begin::FullWithLinks => 1 << 20,
        };
        let mut command = self.command(self.enter, RUN, bytes, &arguments);
        command.env(CACHE, param_cache());
        command.env(on_disk, self.path(""));
        if !matches!(begin, Begin::Empty(_)) {
            command.env("FULL", "1");
        }
        if matches!(begin, Begin::FullWithLinks) {
            command.env("LINKED", param_cache());
        }
        let output = command.output().unwrap();
        assert_ne!(output.status.code(), Some(125), "{output:?}");
        let files = std::fs::read_to_string(self.beside("disk.files")).unwrap();
        let sized = files.lines().map(|line| {
            let (bytes, name) = line.split_once(' ').unwrap();
            (bytes.parse().unwrap(), name.to_owned())
        });
        let files = sized.filter(|(_, name)| name != "./fill").collect();
        Ran { output, files }
    }
}

/// The disk when a command begins.
#[derive(Clone, Copy)]
enum Begin {
    /// It has so many bytes, and all are free.
    Empty(u64),
    Full,
    /// It is full, and has links to the parameters of other tests.
    FullWithLinks,
}

impl Ran {
    /// Checks the error, which names a place on the disk, and the files that are left.
    fn check(&self, code: ErrorCode, place: &Path, is_allowed: impl Fn(u64, &str) -> bool) {
        let said = String::from_utf8_lossy(&self.output.stderr);
        assert_eq!(self.output.status.code(), Some(1), "{said}");
        assert!(!said.contains("panicked"), "{said}");
        let end = format!(" [{code}]");
        let error = said.lines().find(|line| line.ends_with(&end));
        let error = error.unwrap_or_else(|| panic!("no {code} in {said}"));
        assert!(error.contains(text(place)), "{error}");
        assert!(error.contains("; "), "it says what to do: {error}");
        for (bytes, name) in &self.files {
            assert!(is_allowed(*bytes, name), "{bytes} bytes in {name}: {said}");
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Shared with the other tests that prove, and kept between runs.
fn param_cache() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parameters");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn request(kind: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/sector-2kib");
    folder.join(format!("{kind}.json"))
}

/// Makes the parameters of a kind, unless another test has.
fn generate(kind: &str) {
    let made = Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args([
            "params",
            "generate",
            "--kind",
            kind,
            "--sector-size",
            "2KiB",
        ])
        .env(CACHE, param_cache())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// The file that keeps two programs from making the same parameters stays by intent.
fn is_lock(_: u64, name: &str) -> bool {
    name.ends_with(".params.lock")
}

/// Commands on a full disk. Each has a variable whose folder is there, a code, and the name that
/// the error has.
const ON_A_FULL_DISK: [(&str, &str, ErrorCode, &str); 7] = [
    (
        "prove --request REQUEST --out DISK/out",
        NONE,
        FullDisk,
        "out",
    ),
    ("pce build CIRCUIT --out DISK/out", NONE, FullDisk, "out"),
    ("vanilla CIRCUIT --out DISK/out", NONE, FullDisk, "out"),
    ("vanilla CIRCUIT --out BESIDE/out", "TMPDIR", FullDisk, ""),
    ("params generate CIRCUIT", CACHE, FullDisk, ""),
    (
        "params generate-srs --i-know-this-is-insecure",
        CACHE,
        FullDisk,
        "v28-fil-inner-product-v1.srs",
    ),
    (
        "serve --config BESIDE/cuzk.toml --listen unix://BESIDE/socket",
        NONE,
        JournalFailing,
        "jobs",
    ),
];

const CIRCUIT: &str = "--kind window-post --sector-size 2KiB";

#[test]
fn each_command_says_that_the_disk_is_full_and_leaves_no_file() {
    let Some(disk) = Disk::new("each_command_says_that_the_disk_is_full_and_leaves_no_file") else {
        return;
    };
    generate("window-post");
    let journal = disk.path("jobs");
    let jobs = format!("[server]\nhttp = \"\"\n[jobs]\njournal = {journal:?}\n");
    std::fs::write(disk.beside("cuzk.toml"), jobs).unwrap();
    let (own, request) = (disk.path(""), request("window-post"));
    for (command, on_disk, code, name) in ON_A_FULL_DISK {
        let command = command.replace("CIRCUIT", CIRCUIT);
        let words = command.split(' ').map(|word| {
            let word = word.replace("DISK/", text(&own));
            let word = word.replace("BESIDE/", text(&disk.beside("")));
            word.replace("REQUEST", text(&request))
        });
        let words: Vec<_> = words.collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        println!("{command}");
        let ran = disk.run(Begin::Full, on_disk, &words);
        ran.check(code, &disk.path(name), is_lock);
    }
    if cuzk_kernels::testing::ifma().is_some() {
        // Without these instructions there are no multiples.
        let prepare = format!("params prepare {CIRCUIT}");
        let prepare: Vec<_> = prepare.split(' ').collect();
        let ran = disk.run(Begin::FullWithLinks, CACHE, &prepare);
        ran.check(FullDisk, &own, |_, _| false);
    }
}

#[test]
fn a_disk_that_fills_while_a_command_writes_has_no_unfinished_file() {
    let Some(disk) = Disk::new("a_disk_that_fills_while_a_command_writes_has_no_unfinished_file")
    else {
        return;
    };
    let (out, own) = (disk.path("out"), disk.path(""));
    let build = format!("pce build {CIRCUIT} --out {}", text(&out));
    let build: Vec<_> = build.split(' ').collect();
    let ran = disk.run(Begin::Empty(8 << 10), NONE, &build);
    ran.check(FullDisk, &out, |_, _| false);

    // There is room for the circuit, which is whole, and not for the parameters.
    let generate = format!("params generate {CIRCUIT}");
    let generate: Vec<_> = generate.split(' ').collect();
    let ran = disk.run(Begin::Empty(4 << 20), CACHE, &generate);
    let is_circuit = |name: &str| name.ends_with(".circuit");
    ran.check(FullDisk, &own, |bytes, name| {
        is_circuit(name) || is_lock(bytes, name)
    });
    assert!(
        ran.files.iter().any(|(_, name)| is_circuit(name)),
        "{:?}",
        ran.files
    );
}

/// The bytes of a page, of which each file on the disk has a whole number.
const PAGE: u64 = 4096;

/// The pages of made-up parameters, and the bytes of their key.
const PAGES: u64 = 700;
const KEY_BYTES: u64 = 500;

/// Makes up parameters in a folder, with a list of their digests.
fn make_up(folder: &Path) -> PathBuf {
    let id = CircuitId {
        kind: ProofKind::WinningPost,
        sector_size: SectorSize::KiB2,
    };
    let files = circuits::parameter_files(id).unwrap();
    let entries = [(files.vk, KEY_BYTES), (files.params, PAGE * PAGES)].map(|(name, length)| {
        let bytes = vec![7; usize::try_from(length).unwrap()];
        let digest = Digest::of_bytes(&bytes);
        std::fs::write(folder.join(&name), bytes).unwrap();
        format!(r#""{name}": {{"cid": "Qm1", "digest": "{digest}", "sector_size": 2048}}"#)
    });
    let list = folder.join("list.json");
    std::fs::write(&list, format!("{{{}}}", entries.join(","))).unwrap();
    list
}

/// The bytes that came are kept in a folder of their own. A file that has its name is whole.
#[test]
fn a_fetch_onto_a_full_disk_asks_for_room_and_for_no_other_source() {
    let Some(disk) = Disk::new("a_fetch_onto_a_full_disk_asks_for_room_and_for_no_other_source")
    else {
        return;
    };
    let from = tempfile::tempdir().unwrap();
    let list = make_up(from.path());
    let (from, list) = (text(from.path()), text(&list));
    let fetch = "params fetch --kind winning-post --sector-size 2KiB";
    let fetch = format!("{fetch} --digests {list} --from {from}");
    let fetch: Vec<_> = fetch.split(' ').collect();
    let own = disk.path("");
    let is_whole_or_kept = |bytes: u64, name: &str| {
        name.starts_with("./.cuzk-fetch/")
            || name.ends_with(".lock")
            || name == "./.cuzk-verified.json"
            || name.ends_with(".vk") && bytes == KEY_BYTES
            || name.ends_with(".params") && bytes == PAGE * PAGES
    };
    // There is less room than the files need. Then there is as much, and none for the records of
    // what came.
    for (pages, place, words) in [
        (PAGES, &*own, "bytes are still to be fetched"),
        (
            PAGES + 1,
            Path::new("v28-proof-of-spacetime"),
            "No space left on device",
        ),
    ] {
        let ran = disk.run(Begin::Empty(PAGE * pages), CACHE, &fetch);
        ran.check(FullDisk, place, is_whole_or_kept);
        let said = String::from_utf8_lossy(&ran.output.stderr);
        assert!(said.contains(words), "{said}");
        assert!(
            said.contains("make room") && !said.contains("another source"),
            "{said}"
        );
    }
}

/// A process that is killed with its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Writes to a disk until it takes no more.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    let error = loop {
        if let Err(error) = file.write_all(&[0; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
}

#[test]
fn a_daemon_without_room_for_its_journal_refuses_jobs_until_there_is_room() {
    let Some(disk) =
        Disk::new("a_daemon_without_room_for_its_journal_refuses_jobs_until_there_is_room")
    else {
        return;
    };
    generate("window-post");
    let (config, socket) = (disk.beside("cuzk.toml"), disk.beside("cuzk.sock"));
    let jobs = format!(
        "[jobs]\njournal = {:?}\n[server]\nhttp = \"\"\n[srs]\nmultiples = []\n",
        text(&disk.path("jobs"))
    );
    std::fs::write(&config, jobs).unwrap();
    let address = format!("unix://{}", socket.display());
    let serve = [
        env!("CARGO_BIN_EXE_cuzk"),
        "serve",
        "--config",
        text(&config),
    ];
    let serve = [&serve[..], &["--listen", &address]].concat();
    let log = std::fs::File::create(disk.beside("log")).unwrap();
    let mut command = disk.command(disk.enter, START, 16 << 20, &serve);
    command.env(CACHE, param_cache());
    command.stdout(Stdio::null()).stderr(log);
    let mut daemon = Killed(command.spawn().unwrap());
    let read_log = || std::fs::read_to_string(disk.beside("log")).unwrap();
    let until = Instant::now() + PATIENCE;
    while !read_log().contains("serves clients on") {
        assert!(Instant::now() < until, "{}", read_log());
        assert!(daemon.0.try_wait().unwrap().is_none(), "{}", read_log());
        thread::sleep(Duration::from_millis(20));
    }
    // The daemon's own view of the disk.
    let seen = Path::new("/proc").join(daemon.0.id().to_string());
    let filled = seen
        .join("root")
        .join(disk.path("fill").strip_prefix("/").unwrap());
    fill(&filled);
    let submit = |kind: &str, retry_s: u64| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
        command.args(["submit", "--retry-s", &retry_s.to_string()]);
        command.args(["--address", &address]);
        command.arg("--request").arg(request(kind));
        command.arg("--out").arg(disk.beside("proof"));
        command.output().unwrap()
    };
    for retry_s in [0, 1] {
        let began = Instant::now();
        let refused = submit("porep", retry_s);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{said}\n{}", read_log());
        assert!(said.contains(&format!("[{JournalFailing}]")), "{said}");
        assert!(said.contains(text(&disk.path("jobs"))), "{said}");
        // The call is repeated until the time is over.
        assert!(began.elapsed() >= Duration::from_secs(retry_s), "{said}");
        assert!(!disk.beside("proof").exists());
        assert!(daemon.0.try_wait().unwrap().is_none(), "{}", read_log());
    }

    std::fs::remove_file(&filled).unwrap();
    // The store is opened again by one of the next calls.
    let proved = submit("window-post", PATIENCE.as_secs());
    assert!(proved.status.success(), "{proved:?}\n{}", read_log());
    assert_eq!(std::fs::read(disk.beside("proof")).unwrap().len(), 192);
    assert!(!read_log().contains("panicked"), "{}", read_log());
}
