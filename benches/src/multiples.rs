//! Parameters in a file, with multiples of their points beside it.
//!
//! Not the engine's cache of parameters: the files end with the value. The invariant: the file
//! holds the bytes of the parameters that it was made of.

use std::sync::Arc;
use std::time::Duration;

use cuzk_groth16::Circuit;
use cuzk_groth16::params::MappedParams;
use cuzk_kernels::Isa;
use tempfile::TempDir;

use crate::{Result, mode::cores, study::time};

/// Parameters whose multiples are made.
pub struct WithMultiples {
    /// The parameters.
    pub params: Arc<MappedParams>,
    /// How long the multiples took to make.
    pub took: Duration,
    /// The size of their file.
    pub file_bytes: u64,
    /// Holds the files.
    _folder: TempDir,
}

impl WithMultiples {
    /// Writes the parameters to a temporary folder and makes their multiples, with all cores.
    ///
    /// # Errors
    ///
    /// If a file cannot be written, and if these instructions have no multiples.
    pub fn make(params: &MappedParams, circuit: &Circuit, isa: Isa) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("circuit.params");
        params.write(&path)?;
        let params = Arc::new(MappedParams::open(&path)?);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(cores())
            .build()?;
        let renew = || params.renew_multiples(circuit, isa.into(), cores(), true);
        let (made, took) = time(|| pool.install(renew));
        if !made? {
            return Err(format!("there are no multiples for {isa}").into());
        }
        Ok(Self {
            took,
            file_bytes: std::fs::metadata(path.with_extension("multiples"))?.len(),
            params,
            _folder: folder,
        })
    }
}

#[cfg(test)]
mod tests {
    use cuzk_groth16::params::ToxicWaste;
    use cuzk_groth16::{Prover, ProvingDevice, compile, setup};
    use cuzk_testing::circuits::Mimc;

    use super::*;

    #[test]
    fn a_proof_with_multiples_verifies() {
        let Some(isa) = cuzk_kernels::testing::ifma() else {
            return;
        };
        let blank = Mimc::blank(64);
        let circuit = compile("MiMC", blank.clone()).unwrap();
        let params = setup(&circuit, &ToxicWaste::from_seed(0)).unwrap();
        let made = WithMultiples::make(&params, &circuit, isa).unwrap();
        assert_eq!(made.params.bytes(), params.bytes());
        assert!(made.file_bytes > 0);
        let device = Arc::new(ProvingDevice::cpu(1, isa).unwrap());
        let prover = Prover::on(Arc::new(circuit), made.params, device).unwrap();
        assert!(prover.prove(blank.with([1, 2])).is_ok());
    }
}
