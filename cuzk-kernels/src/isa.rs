//! Which instructions the kernels use, as a value.
//!
//! One binary runs everywhere: implementations are chosen when it runs, by
//! the machine or by the caller, never by the compiler's target.

use std::fmt;
use std::str::FromStr;

/// A set of instructions that this machine has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Isa(Implementation);

/// The implementation that an [`Isa`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Implementation {
    /// Plain Rust.
    Portable,
    /// Scalar instructions, by blst.
    Scalar,
    /// AVX-512 with 52-bit multiply-add, eight lanes.
    #[cfg(target_arch = "x86_64")]
    Ifma(crate::token::Ifma),
}

impl Isa {
    /// Whatever the compiler makes of plain Rust. Every machine has this.
    pub const PORTABLE: Isa = Isa(Implementation::Portable);

    /// Scalar instructions: blst's assembly, which itself uses ADX and BMI2
    /// where they are, and blst's C where it has no assembly. Every machine has
    /// this.
    pub const SCALAR: Isa = Isa(Implementation::Scalar);

    /// AVX-512 IFMA, if this machine has it.
    pub fn ifma() -> Option<Isa> {
        #[cfg(target_arch = "x86_64")]
        return crate::token::Ifma::detect().map(|token| Isa(Implementation::Ifma(token)));
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// The fastest that this machine has.
    pub fn best() -> Isa {
        Isa::ifma().unwrap_or(Isa::SCALAR)
    }

    /// All that this machine has, slowest first.
    pub fn all() -> Vec<Isa> {
        [Some(Isa::PORTABLE), Some(Isa::SCALAR), Isa::ifma()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self.0 {
            Implementation::Portable => "portable",
            Implementation::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(_) => "ifma",
        }
    }

    pub(crate) fn implementation(self) -> Implementation {
        self.0
    }
}

#[cfg(target_arch = "x86_64")]
impl From<crate::token::Ifma> for Isa {
    fn from(token: crate::token::Ifma) -> Isa {
        Isa(Implementation::Ifma(token))
    }
}

impl Default for Isa {
    fn default() -> Isa {
        Isa::best()
    }
}

impl fmt::Debug for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that stands for no instructions, or for some this machine lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IsaError {
    /// No such name.
    #[error(
        "unknown instruction set {0:?}, expected \"auto\", \"ifma\", \"scalar\" or \"portable\""
    )]
    Unknown(String),
    /// Not on this machine.
    #[error("this machine has no AVX-512 IFMA, use \"auto\", \"scalar\" or \"portable\"")]
    Unsupported,
}

impl FromStr for Isa {
    type Err = IsaError;

    /// Reads `auto` (the fastest), `ifma`, `scalar` or `portable`.
    fn from_str(name: &str) -> Result<Isa, IsaError> {
        match name {
            "auto" => Ok(Isa::best()),
            "ifma" => Isa::ifma().ok_or(IsaError::Unsupported),
            "scalar" => Ok(Isa::SCALAR),
            "portable" => Ok(Isa::PORTABLE),
            _ => Err(IsaError::Unknown(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for isa in Isa::all() {
            assert_eq!(isa.name().parse(), Ok(isa));
        }
        let names = ["portable", "scalar", "ifma"];
        assert!(names.starts_with(&Isa::all().iter().map(|isa| isa.name()).collect::<Vec<_>>()));
        assert_eq!("auto".parse(), Ok(Isa::best()));
        assert_ne!(Isa::best(), Isa::PORTABLE);
        assert_eq!(
            "sse".parse::<Isa>(),
            Err(IsaError::Unknown("sse".to_owned()))
        );
    }
}
