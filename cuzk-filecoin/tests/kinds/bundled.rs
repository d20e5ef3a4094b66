//! The bundled sector: every request decodes, and what its job says about the
//! circuit agrees with the circuit and with the proofs library.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bellperson::ConstraintSystem as _;
use cuzk_filecoin::ProofRequest;
use cuzk_filecoin::blank;
use cuzk_filecoin::{CircuitId, ProofKind, ReferenceStatement, SectorSize, decode_reference};
use storage_proofs_core::parameter_cache::PARAMETERS;

fn bundled(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/sector-2kib"));
    std::fs::read(folder.join(name)).unwrap()
}

fn job(name: &str) -> Box<dyn ReferenceStatement> {
    decode_reference(&ProofRequest::from_json(&bundled(name)).unwrap()).unwrap()
}

const REQUESTS: [(&str, ProofKind); 5] = [
    ("porep.json", ProofKind::Porep),
    ("porep-c1.json", ProofKind::Porep),
    ("winning-post.json", ProofKind::WinningPost),
    ("window-post.json", ProofKind::WindowPost),
    ("snap-deals.json", ProofKind::SnapDeals),
];

#[test]
fn every_request_decodes() {
    for (name, kind) in REQUESTS {
        let request = ProofRequest::from_json(&bundled(name)).unwrap();
        assert_eq!(request.kind(), kind, "{name}");
        let job = decode_reference(&request).unwrap();
        assert_eq!(
            job.circuit(),
            CircuitId {
                kind,
                sector_size: SectorSize::KiB2
            },
            "{name}"
        );
        assert_eq!(job.partitions(), 1, "{name}");
    }
}

#[test]
fn a_request_survives_its_file() {
    for (name, _) in REQUESTS {
        let request = ProofRequest::from_json(&bundled(name)).unwrap();
        assert_eq!(
            ProofRequest::from_json(&request.to_json()).unwrap(),
            request,
            "{name}"
        );
    }
}

#[test]
fn a_mark_in_front_of_a_file_is_not_a_part_of_it() {
    for (name, kind) in REQUESTS {
        let bytes = bundled(name);
        let marked = [&b"\xef\xbb\xbf"[..], &bytes].concat();
        let read = ProofRequest::from_json(&marked).unwrap();
        assert_eq!(read, ProofRequest::from_json(&bytes).unwrap(), "{name}");
        if kind != ProofKind::Porep {
            assert_eq!(ProofRequest::peek_kind(&marked), Some(kind), "{name}");
        }
    }
}

/// The page for authors of requests says where the sector comes from.
#[test]
fn the_sector_is_the_one_that_the_page_names() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/requests.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (name, _) in REQUESTS.iter().filter(|(name, _)| *name != "porep-c1.json") {
        let request: serde_json::Value = serde_json::from_slice(&bundled(name)).unwrap();
        let sectors = request["public_sectors"].as_array();
        let number = sectors.map_or(&request["sector_number"], |all| &all[0]["sector_number"]);
        let named = format!("number {number} of miner {}", request["miner_id"]);
        assert!(page.contains(&named), "{name}: {named}");
    }
}

/// The checked memory finds nothing in circuits that are right. Their rows read the
/// variables that the compiled circuit reads.
#[test]
fn posts_read_what_was_written_once() {
    for name in ["winning-post.json", "window-post.json"] {
        let job = job(name);
        let checked = job.checked_circuit(0).unwrap();
        let circuit = blank::compile(job.circuit()).unwrap();
        assert_eq!(checked.violation, None, "{name}");
        assert_eq!(checked.rows, circuit.rows(), "{name}");
        assert_eq!(checked.densities, circuit.densities(), "{name}");
    }
}

/// The three ways to hand in a C1 output are the same statement.
#[test]
fn c1_wrapped_or_bare_is_the_same() {
    let request: serde_json::Value = serde_json::from_slice(&bundled("porep.json")).unwrap();
    let wrapper = base64(request["vanilla_proof"].as_str().unwrap());
    let wrapped = decode_reference(&ProofRequest::from_json(&wrapper).unwrap()).unwrap();
    let expected = job("porep.json").public_inputs(0).unwrap();
    assert_eq!(wrapped.public_inputs(0).unwrap(), expected);
    assert_eq!(job("porep-c1.json").public_inputs(0).unwrap(), expected);
}

fn base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap()
}

/// Records the circuit, and checks the request's witness and public inputs
/// against it. Sizes are public inputs with ONE, aux variables and rows.
fn check_circuit(name: &str, inputs: usize, aux: usize, rows: usize) {
    let job = job(name);
    let r1cs = blank::record(job.circuit()).unwrap();
    assert_eq!(
        (r1cs.num_inputs(), r1cs.num_aux(), r1cs.rows()),
        (inputs, aux, rows),
        "{name}"
    );

    let witness = job.witness(0).unwrap().to_plain();
    assert_eq!(cuzk_pce::check(&r1cs, &witness).unwrap(), None, "{name}");
    assert_eq!(
        witness.inputs()[1..],
        job.public_inputs(0).unwrap(),
        "{name}"
    );

    let reference = job.reference_witness(0).unwrap();
    assert!(witness.aux() == reference.aux_slice(), "{name}");
}

#[test]
fn porep_is_its_circuits() {
    check_circuit("porep.json", 40, 2_685_673, 2_687_921);
}

#[test]
fn winning_post_is_its_circuits() {
    check_circuit("winning-post.json", 133, 91_674, 90_750);
}

#[test]
fn window_post_is_its_circuits() {
    check_circuit("window-post.json", 23, 22_128, 21_866);
}

#[test]
fn snap_deals_is_its_circuits() {
    check_circuit("snap-deals.json", 5, 1_703_569, 1_705_039);
}

#[test]
fn there_are_no_other_partitions() {
    for (name, _) in REQUESTS {
        let job = job(name);
        for error in [
            job.witness(1).unwrap_err(),
            job.public_inputs(usize::MAX).unwrap_err(),
        ] {
            assert!(
                error.is_input() && error.to_string().starts_with("partition: "),
                "{error}"
            );
        }
    }
}

/// The parameters that the network has published are found under our names.
#[test]
fn files_are_named_as_published() {
    let mut names = BTreeSet::new();
    for kind in ProofKind::ALL {
        let prefix = match kind {
            ProofKind::Porep => "v28-stacked-proof-of-replication-",
            ProofKind::WinningPost | ProofKind::WindowPost => "v28-proof-of-spacetime-fallback-",
            ProofKind::SnapDeals => "v28-empty-sector-update-",
        };
        for sector_size in SectorSize::ALL {
            let id = CircuitId { kind, sector_size };
            for name in [id.params_file_name().unwrap(), id.vk_file_name().unwrap()] {
                assert!(name.starts_with(prefix), "{id}: {name}");
                let published = PARAMETERS.get(&name).map(|data| data.sector_size);
                assert_eq!(published, Some(sector_size.bytes()), "{id}: {name}");
                assert!(names.insert(name), "{id}");
            }
        }
    }
}
