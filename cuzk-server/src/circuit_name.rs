//! The names of circuits and of kinds, as clients of the wire know them.
//!
//! Not the engine's names: the engine says `winning-post-32GiB` where the wire says
//! `winning-32g`. The invariant: [`parse`] reads both forms of each circuit and no other
//! text.

use cuzk_core::ProofKind;
use cuzk_filecoin::{CircuitId, SectorSize};

/// Returns the name of a circuit, for example `porep-32g`.
pub(crate) fn circuit_name(id: CircuitId) -> String {
    format!("{}-{}", short_name(id.kind), size_name(id.sector_size))
}

/// Returns the name of a circuit that has the engine's name `text`. Any other text is
/// returned as it is.
pub(crate) fn translated(text: &str) -> String {
    parse(text).map_or_else(|| text.to_owned(), circuit_name)
}

/// Returns the name of a kind in queues, for example `porep-c2`.
pub(crate) fn kind_name(kind: ProofKind) -> &'static str {
    match kind {
        ProofKind::Porep => "porep-c2",
        ProofKind::SnapDeals => "snap-update",
        ProofKind::WindowPost => "window-post",
        ProofKind::WinningPost => "winning-post",
    }
}

/// Returns the name in queues of a kind that has the engine's name `text`. Any other text
/// is returned as it is.
pub(crate) fn translated_kind(text: &str) -> &str {
    let kind: Result<ProofKind, _> = text.parse();
    match kind {
        Ok(kind) => kind_name(kind),
        Err(_) => text,
    }
}

/// Reads the name of a circuit: `porep-32g`, or in the engine's form `porep-32GiB`.
pub(crate) fn parse(text: &str) -> Option<CircuitId> {
    circuits().find(|&id| circuit_name(id) == text || id.to_string() == text)
}

/// Returns the form of all names, for an error.
pub(crate) fn form() -> String {
    let kinds = ProofKind::ALL.map(short_name).join(", ");
    let sizes = SectorSize::ALL.map(size_name).join(", ");
    format!(
        "use KIND-SIZE, for example porep-32g; KIND is one of {kinds}, and SIZE is one of {sizes}"
    )
}

fn circuits() -> impl Iterator<Item = CircuitId> {
    ProofKind::ALL.into_iter().flat_map(|kind| {
        let of_kind = move |sector_size| CircuitId { kind, sector_size };
        SectorSize::ALL.into_iter().map(of_kind)
    })
}

fn short_name(kind: ProofKind) -> &'static str {
    match kind {
        ProofKind::Porep => "porep",
        ProofKind::SnapDeals => "snap",
        ProofKind::WindowPost => "wpost",
        ProofKind::WinningPost => "winning",
    }
}

fn size_name(size: SectorSize) -> &'static str {
    match size {
        SectorSize::KiB2 => "2k",
        SectorSize::MiB8 => "8m",
        SectorSize::MiB512 => "512m",
        SectorSize::GiB32 => "32g",
        SectorSize::GiB64 => "64g",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_every_name_are_read() {
        for kind in ProofKind::ALL {
            for sector_size in SectorSize::ALL {
                let id = CircuitId { kind, sector_size };
                assert_eq!(parse(&circuit_name(id)), Some(id), "{id}");
                assert_eq!(parse(&id.to_string()), Some(id), "{id}");
                assert_eq!(translated(&id.to_string()), circuit_name(id));
            }
        }
        for bad in [
            "",
            "porep",
            "porep-",
            "porep-33g",
            "-32g",
            "nothing-32g",
            "PoRep-32g",
            "porep-32gib",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
            assert_eq!(translated(bad), bad);
        }
    }

    #[test]
    fn names_are_those_of_the_wire() {
        let name = |kind, sector_size| circuit_name(CircuitId { kind, sector_size });
        assert_eq!(name(ProofKind::Porep, SectorSize::GiB32), "porep-32g");
        assert_eq!(name(ProofKind::WindowPost, SectorSize::GiB32), "wpost-32g");
        assert_eq!(
            name(ProofKind::WinningPost, SectorSize::GiB32),
            "winning-32g"
        );
        assert_eq!(name(ProofKind::SnapDeals, SectorSize::GiB64), "snap-64g");
        let kinds = ProofKind::ALL.map(|kind| translated_kind(kind.name()));
        for kind in ["porep-c2", "snap-update", "window-post", "winning-post"] {
            assert!(kinds.contains(&kind), "{kinds:?}");
        }
        assert_eq!(translated_kind("other"), "other");
    }

    #[test]
    fn the_form_has_each_kind_and_each_size() {
        let form = form();
        for id in circuits() {
            let name = circuit_name(id);
            let (kind, size) = name.split_once('-').unwrap();
            assert!(form.contains(kind) && form.contains(size), "{form}");
        }
    }
}
