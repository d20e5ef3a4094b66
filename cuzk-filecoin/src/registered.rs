//! The current registered proof of each kind and sector size.
//!
//! Not a table of all of them: requests name theirs. Circuits, and with them
//! parameters, do not depend on a proof's version.

use filecoin_proofs_api::{RegisteredPoStProof, RegisteredSealProof, RegisteredUpdateProof};

use crate::sector_size::SectorSize;

/// The seal proof of this size.
pub(crate) fn seal_proof(size: SectorSize) -> RegisteredSealProof {
    match size {
        SectorSize::KiB2 => RegisteredSealProof::StackedDrg2KiBV1_1,
        SectorSize::MiB8 => RegisteredSealProof::StackedDrg8MiBV1_1,
        SectorSize::MiB512 => RegisteredSealProof::StackedDrg512MiBV1_1,
        SectorSize::GiB32 => RegisteredSealProof::StackedDrg32GiBV1_1,
        SectorSize::GiB64 => RegisteredSealProof::StackedDrg64GiBV1_1,
    }
}

/// The seal proof of this size whose challenges need no seed of the chain.
pub(crate) fn non_interactive_seal_proof(size: SectorSize) -> RegisteredSealProof {
    match size {
        SectorSize::KiB2 => RegisteredSealProof::StackedDrg2KiBV1_2_Feat_NonInteractivePoRep,
        SectorSize::MiB8 => RegisteredSealProof::StackedDrg8MiBV1_2_Feat_NonInteractivePoRep,
        SectorSize::MiB512 => RegisteredSealProof::StackedDrg512MiBV1_2_Feat_NonInteractivePoRep,
        SectorSize::GiB32 => RegisteredSealProof::StackedDrg32GiBV1_2_Feat_NonInteractivePoRep,
        SectorSize::GiB64 => RegisteredSealProof::StackedDrg64GiBV1_2_Feat_NonInteractivePoRep,
    }
}

/// The WinningPoSt proof of this size.
pub(crate) fn winning_post_proof(size: SectorSize) -> RegisteredPoStProof {
    match size {
        SectorSize::KiB2 => RegisteredPoStProof::StackedDrgWinning2KiBV1,
        SectorSize::MiB8 => RegisteredPoStProof::StackedDrgWinning8MiBV1,
        SectorSize::MiB512 => RegisteredPoStProof::StackedDrgWinning512MiBV1,
        SectorSize::GiB32 => RegisteredPoStProof::StackedDrgWinning32GiBV1,
        SectorSize::GiB64 => RegisteredPoStProof::StackedDrgWinning64GiBV1,
    }
}

/// The WindowPoSt proof of this size.
pub(crate) fn window_post_proof(size: SectorSize) -> RegisteredPoStProof {
    match size {
        SectorSize::KiB2 => RegisteredPoStProof::StackedDrgWindow2KiBV1_2,
        SectorSize::MiB8 => RegisteredPoStProof::StackedDrgWindow8MiBV1_2,
        SectorSize::MiB512 => RegisteredPoStProof::StackedDrgWindow512MiBV1_2,
        SectorSize::GiB32 => RegisteredPoStProof::StackedDrgWindow32GiBV1_2,
        SectorSize::GiB64 => RegisteredPoStProof::StackedDrgWindow64GiBV1_2,
    }
}

/// The update proof of this size.
pub(crate) fn update_proof(size: SectorSize) -> RegisteredUpdateProof {
    match size {
        SectorSize::KiB2 => RegisteredUpdateProof::StackedDrg2KiBV1,
        SectorSize::MiB8 => RegisteredUpdateProof::StackedDrg8MiBV1,
        SectorSize::MiB512 => RegisteredUpdateProof::StackedDrg512MiBV1,
        SectorSize::GiB32 => RegisteredUpdateProof::StackedDrg32GiBV1,
        SectorSize::GiB64 => RegisteredUpdateProof::StackedDrg64GiBV1,
    }
}
