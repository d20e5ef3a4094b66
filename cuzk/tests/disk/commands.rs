//! Commands that write to a disk that is full, or becomes full.

use cuzk_core::error::ErrorCode::{self, JournalFailing, Output as FullDisk};

use crate::common::{CACHE, data, generate, text};
use crate::small_disk::{Begin, Disk, NONE};

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
    let (own, request) = (disk.path(""), data("window-post.json"));
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
