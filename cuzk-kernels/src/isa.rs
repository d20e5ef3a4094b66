//! Which instructions the kernels use, as a value.
//!
//! One binary runs everywhere: implementations are chosen when it runs, by
//! the machine or by the caller, never by the compiler's target.

use std::fmt;
use std::str::FromStr;

/// A set of instructions that this machine has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Isa(Implementation);

/// What an [`Isa`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Implementation {
    /// Scalar instructions, by blst.
    Portable,
    /// AVX-512 with 52-bit multiply-add, eight lanes.
    #[cfg(target_arch = "x86_64")]
    Ifma(crate::ifma::Ifma),
}

impl Isa {
    /// Scalar instructions (blst, which itself uses ADX and BMI2 where they
    /// are). Every machine has this.
    pub const PORTABLE: Isa = Isa(Implementation::Portable);

    /// AVX-512 IFMA, if this machine has it.
    pub fn ifma() -> Option<Isa> {
        #[cfg(target_arch = "x86_64")]
        return crate::ifma::Ifma::detect().map(|token| Isa(Implementation::Ifma(token)));
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// The fastest that this machine has.
    pub fn best() -> Isa {
        Isa::ifma().unwrap_or(Isa::PORTABLE)
    }

    /// All that this machine has, slowest first.
    pub fn all() -> Vec<Isa> {
        [Some(Isa::PORTABLE), Isa::ifma()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self.0 {
            Implementation::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(_) => "ifma",
        }
    }

    pub(crate) fn implementation(self) -> Implementation {
        self.0
    }
}

#[cfg(target_arch = "x86_64")]
impl From<crate::ifma::Ifma> for Isa {
    fn from(token: crate::ifma::Ifma) -> Isa {
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
    #[error("unknown instruction set {0:?}, expected \"auto\", \"portable\" or \"ifma\"")]
    Unknown(String),
    /// Not on this machine.
    #[error("this machine has no AVX-512 IFMA, use \"auto\" or \"portable\"")]
    Unsupported,
}

impl FromStr for Isa {
    type Err = IsaError;

    /// Reads `auto` (the fastest), `portable` or `ifma`.
    fn from_str(name: &str) -> Result<Isa, IsaError> {
        match name {
            "auto" => Ok(Isa::best()),
            "portable" => Ok(Isa::PORTABLE),
            "ifma" => Isa::ifma().ok_or(IsaError::Unsupported),
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
        assert_eq!("auto".parse(), Ok(Isa::best()));
        assert_eq!(
            "sse".parse::<Isa>(),
            Err(IsaError::Unknown("sse".to_owned()))
        );
    }
}
