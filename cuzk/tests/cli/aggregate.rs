//! `cuzk aggregate` with valid proofs of the bundled sector and of a non-interactive one, and
//! everything that it refuses.

use cuzk_filecoin::{ProofRequest, decode};
use cuzk_testing::porep_proof;
use cuzk_testing::simulated::simulated_proofs;
use tempfile::TempDir;

use super::*;

/// A folder with the verifying key of PoRep, an SRS for four proofs, and a proof.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = cuzk_testing::folder_with_porep_key(&param_cache());
        std::fs::write(folder.path().join("proof"), porep_proof()).unwrap();
        Self(folder)
    }

    fn with_srs() -> Self {
        let folder = Self::new();
        let made = folder.run(&[
            "params",
            "generate-srs",
            "--proofs",
            "4",
            "--i-know-this-is-insecure",
        ]);
        assert!(made.status.success());
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        cuzk_in(self.0.path(), arguments)
    }

    /// Aggregates the bundled sector `count` times, with proofs in the file `proof`.
    fn aggregate(&self, count: usize, proof: &str, more: &[&str]) -> Output {
        let (request, proof) = (data("porep.json"), self.path(proof));
        let (request, out) = (request.to_str().unwrap(), self.path("out"));
        let pair = ["--porep", request, "--proof", &proof];
        let pairs = std::iter::repeat_n(pair, count).flatten();
        let mut arguments: Vec<&str> = pairs.collect();
        arguments.extend(["--out", &out]);
        self.run(&[&["aggregate"], arguments.as_slice(), more].concat())
    }
}

#[test]
fn proofs_of_the_bundled_sector_are_aggregated_and_the_chains_verifier_accepts() {
    let folder = Folder::with_srs();
    // Without a second run of v1 for each count: the versions differ in the transcript only.
    for (count, more) in [(1, vec![]), (3, vec![]), (2, vec!["--first-version"])] {
        let more = [more, vec!["--reference", "--json"]].concat();
        let output = folder.aggregate(count, "proof", &more);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&report["sectors"], &report["proofs"]),
            (&count.into(), &count.into())
        );
        assert_eq!(report["padded_proofs"], count.max(2).next_power_of_two());
        assert_eq!(report["verified"], true);
        let written = std::fs::metadata(folder.path("out")).unwrap().len();
        assert_eq!(report["aggregate_bytes"], written);
    }
}

#[test]
fn a_list_of_sectors_gives_the_aggregate_of_their_requests() {
    let folder = Folder::with_srs();
    assert!(folder.aggregate(2, "proof", &[]).status.success());
    let expected = std::fs::read(folder.path("out")).unwrap();
    let list = cuzk_testing::aggregate_request(2);
    let (file, out) = (folder.path("list.json"), folder.path("again"));
    std::fs::write(&file, list.to_json()).unwrap();
    let arguments = ["aggregate", "--request", &file, "--out", &out];
    assert!(folder.run(&arguments).status.success());
    assert!(std::fs::read(&out).unwrap() == expected);
    let text = String::from_utf8(list.to_json()).unwrap();
    for (altered, message) in [
        (text.replace("miner_id", "miner"), "unknown field `miner`"),
        (
            text.replace("\"aggregation\":1", "\"aggregation\":2"),
            "aggregation: expected 0",
        ),
        (
            text.replace("\"registered_proof\":5", "\"registered_proof\":15"),
            "sectors[0].proof: expected 2496 bytes, got 192",
        ),
        (
            text.replacen("\"seed\":\"", "\"seed\":\"AAAA", 1),
            "sectors[0].seed: expected 32",
        ),
        ("[]".to_owned(), "not a request to aggregate"),
    ] {
        assert_ne!(altered, text, "{message}");
        std::fs::write(&file, altered).unwrap();
        fails(2, message, &folder.run(&arguments));
    }
}

/// The request is the only copy of a sector's vanilla proof.
#[test]
fn an_aggregate_replaces_nothing_that_the_command_reads() {
    let folder = Folder::with_srs();
    let (request, proof) = (folder.path("porep.json"), folder.path("proof"));
    std::fs::copy(data("porep.json"), &request).unwrap();
    let list = folder.path("list.json");
    std::fs::write(&list, cuzk_testing::aggregate_request(1).to_json()).unwrap();
    let of_porep = ["aggregate", "--porep", &request, "--proof", &proof, "--out"];
    let of_list = ["aggregate", "--request", &list, "--out"];
    let before = [&request, &proof, &list].map(|path| std::fs::read(path).unwrap());
    for (arguments, out, told) in [
        (&of_porep[..], &request, "is a file that the command reads"),
        (&of_porep[..], &proof, "is a file that the command reads"),
        (&of_porep[..], &list, "is a request"),
        (&of_list[..], &list, "is a file that the command reads"),
        (&of_list[..], &request, "is a request"),
    ] {
        let output = folder.run(&[arguments, &[out.as_str()]].concat());
        fails(2, told, &output);
    }
    let after = [&request, &proof, &list].map(|path| std::fs::read(path).unwrap());
    assert!(before == after);

    let out = folder.path("out");
    let swapped = ["aggregate", "--request", &request, "--out", &out];
    fails(2, "give it as --porep", &folder.run(&swapped));

    // `verify` takes the proof of one sector.
    assert!(folder.aggregate(2, "proof", &[]).status.success());
    let verify = ["verify", "--request", &request, "--proof", &out];
    let output = folder.run(&verify);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("an aggregate is verified when"), "{said}");
}

#[test]
fn that_which_cannot_be_aggregated_is_refused_by_name() {
    let folder = Folder::with_srs();
    let mut damaged = porep_proof();
    // Another point of G1, and still one: A in place of C.
    damaged.copy_within(..48, 144);
    std::fs::write(folder.path("wrong"), &damaged).unwrap();
    damaged[3] ^= 1;
    std::fs::write(folder.path("damaged"), &damaged).unwrap();
    std::fs::write(folder.path("short"), &damaged[1..]).unwrap();
    for (proof, message) in [
        ("wrong", "partition 0: the proof does not verify"),
        ("damaged", "sectors[0].proof: sector"),
        ("short", "sectors[0].proof: expected 192 bytes, got 191"),
    ] {
        fails(2, message, &folder.aggregate(1, proof, &[]));
    }
    fails(2, "8 proofs need 16", &folder.aggregate(5, "proof", &[]));
    let other = data("winning-post.json");
    let (other, proof, out) = (
        other.to_str().unwrap(),
        folder.path("proof"),
        folder.path("out"),
    );
    let arguments = [
        "aggregate",
        "--porep",
        other,
        "--proof",
        &proof,
        "--out",
        &out,
    ];
    fails(
        2,
        "a proof of kind winning-post cannot be aggregated",
        &folder.run(&arguments),
    );
    let porep = data("porep.json");
    let arguments = [
        "aggregate",
        "--porep",
        porep.to_str().unwrap(),
        "--out",
        &out,
    ];
    fails(2, "1 requests and 0 proofs", &folder.run(&arguments));
    assert!(!Path::new(&out).exists());
}

#[test]
fn a_missing_srs_has_a_remedy_and_one_that_is_there_is_never_replaced() {
    let folder = Folder::new();
    let output = folder.aggregate(1, "proof", &[]);
    fails(2, "cuzk params fetch --srs", &output);
    fails(2, "v28-fil-inner-product-v1.srs", &output);
    let generate = ["params", "generate-srs", "--proofs", "2"];
    fails(2, "--i-know-this-is-insecure", &folder.run(&generate));
    let generate = [&generate[..], &["--i-know-this-is-insecure"]].concat();
    assert!(folder.run(&generate).status.success());
    fails(2, "is there, and is never replaced", &folder.run(&generate));
    assert!(folder.aggregate(1, "proof", &[]).status.success());
    let path = folder.path("v28-fil-inner-product-v1.srs");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 1);
    std::fs::write(&path, bytes).unwrap();
    fails(2, "fetch it again", &folder.aggregate(1, "proof", &[]));
}

/// Seals a non-interactive sector, and simulates the proofs of its partitions, since thirteen
/// take a minute to prove. Returns the files of the request and of the proofs.
fn non_interactive_sector(folder: &Folder) -> [String; 2] {
    let [request, proofs] = ["ni.json", "ni.proofs"].map(|name| folder.path(name));
    json(&[
        "vanilla",
        "--kind",
        "porep",
        "--sector-size",
        "2KiB",
        "--non-interactive",
        "--out",
        &request,
    ]);
    let statement = ProofRequest::from_json(&std::fs::read(&request).unwrap());
    let statement = decode(&statement.unwrap()).unwrap();
    let simulated = simulated_proofs(&*statement, &param_cache());
    assert_eq!((statement.partitions(), simulated.len()), (13, 2496));
    std::fs::write(&proofs, simulated).unwrap();
    [request, proofs]
}

#[test]
fn a_non_interactive_porep_is_one_aggregate_that_the_chains_verifier_accepts() {
    let folder = Folder::new();
    let [request, proofs] = non_interactive_sector(&folder);
    let out = folder.path("ni.aggregate");
    let aggregate = ["aggregate", "--porep", &request, "--proof", &proofs];
    let aggregate = [&aggregate[..], &["--out", &out]].concat();
    fails(2, "cuzk params fetch --srs", &folder.run(&aggregate));
    cuzk_testing::put_srs(folder.0.path(), 0, 16);
    let first = [&aggregate[..], &["--first-version"]].concat();
    fails(2, "by SnarkPack v2, not by v1", &folder.run(&first));
    let output = folder.run(&[&aggregate[..], &["--reference", "--json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (
            &report["sectors"],
            &report["proofs"],
            &report["padded_proofs"]
        ),
        (&1.into(), &13.into(), &16.into())
    );

    let verify = |proof: &str, more: &[&str]| {
        let arguments = ["verify", "--request", &request, "--proof", proof];
        folder.run(&[&arguments[..], more].concat())
    };
    let valid = |output: Output| output.status.success() && output.stdout == b"valid\n";
    assert!(valid(verify(&out, &["--reference"])));
    assert!(valid(verify(&proofs, &[])));
    // The chain does not take the proofs of partitions.
    let unaggregated = verify(&proofs, &["--reference"]);
    fails(2, "make the aggregate with `cuzk aggregate`", &unaggregated);

    let bytes = std::fs::read(&out).unwrap();
    let another = {
        // A point in the place of another one, near the end: it decodes.
        let mut bytes = bytes.clone();
        let len = bytes.len();
        bytes.copy_within(len - 48.., len - 96);
        bytes
    };
    let altered = [
        (another, "not the aggregate of the 13 partitions"),
        (
            bytes[1..].to_vec(),
            "not the aggregate of the 13 partitions",
        ),
        ([&bytes[..], &[0]].concat(), "1 bytes follow"),
        (Vec::new(), "not the aggregate of the 13 partitions"),
    ];
    for (bytes, message) in altered {
        let file = folder.path("altered");
        std::fs::write(&file, bytes).unwrap();
        let output = verify(&file, &[]);
        assert_eq!(output.status.code(), Some(1));
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains(message), "{stdout}");
    }
}

#[test]
fn non_interactive_sectors_are_made_for_a_porep_and_sealed() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("request.json");
    for (kind, size, message) in [
        ("snap-deals", "2KiB", "--non-interactive is for a PoRep"),
        ("porep", "32GiB", "is not sealed here"),
    ] {
        let vanilla = ["vanilla", "--kind", kind, "--sector-size", size];
        let output = cuzk(&[&vanilla[..], &["--non-interactive", "--out", text(&out)]].concat());
        fails(2, message, &output);
        assert!(!out.exists());
    }
}
