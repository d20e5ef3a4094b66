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
    /// AVX2 with fused multiply-add of floating-point numbers, four lanes.
    #[cfg(target_arch = "x86_64")]
    Avx2(crate::token::Avx2),
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

    /// Returns AVX2 with FMA for transforms and additions of points, and scalar instructions for
    /// all else, if this machine has them.
    pub fn avx2() -> Option<Isa> {
        #[cfg(target_arch = "x86_64")]
        return crate::token::Avx2::detect().map(|token| Isa(Implementation::Avx2(token)));
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Returns AVX-512 IFMA, if this machine has it.
    pub fn ifma() -> Option<Isa> {
        #[cfg(target_arch = "x86_64")]
        return crate::token::Ifma::detect().map(|token| Isa(Implementation::Ifma(token)));
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Returns the fastest instructions that this machine has.
    pub fn best() -> Isa {
        Isa::ifma().or_else(Isa::avx2).unwrap_or(Isa::SCALAR)
    }

    /// Returns all instructions that this machine has, slowest first.
    pub fn all() -> Vec<Isa> {
        let scalar = [Some(Isa::PORTABLE), Some(Isa::SCALAR)];
        let lanes = [Isa::avx2(), Isa::ifma()];
        scalar.into_iter().chain(lanes).flatten().collect()
    }

    /// Returns the name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self.0 {
            Implementation::Portable => "portable",
            Implementation::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Implementation::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(_) => "ifma",
        }
    }

    /// Returns the names that a configuration may have on this machine, fastest first, as text
    /// for people: `"auto", "ifma", "avx2", "scalar", "portable"` where it has all.
    pub fn choices() -> String {
        let all = Isa::all();
        let names = all.iter().rev().map(|isa| isa.name());
        let names = std::iter::once("auto").chain(names);
        let quoted: Vec<_> = names.map(|name| format!("{name:?}")).collect();
        quoted.join(", ")
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

#[cfg(target_arch = "x86_64")]
impl From<crate::token::Avx2> for Isa {
    fn from(token: crate::token::Avx2) -> Isa {
        Isa(Implementation::Avx2(token))
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
        "unknown instruction set {0:?}; use one of \"auto\", \"ifma\", \"avx2\", \"scalar\", \
         \"portable\""
    )]
    Unknown(String),
    /// Not on this machine.
    #[error("this machine has no {0}; use one of {choices}", choices = Isa::choices())]
    Unsupported(&'static str),
}

impl FromStr for Isa {
    type Err = IsaError;

    /// Reads `auto` (the fastest), `ifma`, `avx2`, `scalar` or `portable`.
    fn from_str(name: &str) -> Result<Isa, IsaError> {
        match name {
            "auto" => Ok(Isa::best()),
            "ifma" => Isa::ifma().ok_or(IsaError::Unsupported("AVX-512 IFMA")),
            "avx2" => Isa::avx2().ok_or(IsaError::Unsupported("AVX2 with FMA")),
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
        let names = ["portable", "scalar", "avx2", "ifma"];
        assert!(names.starts_with(&Isa::all().iter().map(|isa| isa.name()).collect::<Vec<_>>()));
        assert_eq!("auto".parse(), Ok(Isa::best()));
        assert_ne!(Isa::best(), Isa::PORTABLE);
        assert_eq!(
            "sse".parse::<Isa>(),
            Err(IsaError::Unknown("sse".to_owned()))
        );
    }

    /// The error offers what the machine has, and nothing else.
    #[test]
    fn instructions_that_are_missing_are_told_with_those_that_are_there() {
        let all = Isa::all();
        let text = IsaError::Unsupported("AVX-1024").to_string();
        assert!(text.starts_with("this machine has no AVX-1024; use one of \"auto\", "));
        assert!(text.ends_with(", \"portable\""), "{text}");
        for name in ["ifma", "avx2", "scalar", "portable"] {
            let is_there = all.iter().any(|isa| isa.name() == name);
            assert_eq!(text.contains(&format!("{name:?}")), is_there, "{text}");
            assert_eq!(name.parse::<Isa>().is_ok(), is_there, "{name}");
        }
    }
}
