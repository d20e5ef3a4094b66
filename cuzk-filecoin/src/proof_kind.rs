//! The four kinds of proof, by name.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// The kind of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProofKind {
    /// A sector was sealed.
    Porep,
    /// A sector that won an election is still stored.
    WinningPost,
    /// A partition of sectors is still stored.
    WindowPost,
    /// A sector's data was replaced.
    SnapDeals,
}

impl ProofKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::Porep,
        Self::WinningPost,
        Self::WindowPost,
        Self::SnapDeals,
    ];

    /// The kind's name, as [`FromStr`] reads it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Porep => "porep",
            Self::WinningPost => "winning-post",
            Self::WindowPost => "window-post",
            Self::SnapDeals => "snap-deals",
        }
    }
}

impl fmt::Display for ProofKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ProofKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                Error::request(
                    "kind",
                    format!("no such kind of proof: {name:?}"),
                    "use one of porep, winning-post, window-post, snap-deals",
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::ProofKind;
    use crate::sector_size::SectorSize;

    #[test]
    fn names_read_back() {
        for kind in ProofKind::ALL {
            assert_eq!(kind.to_string().parse::<ProofKind>().unwrap(), kind);
        }
        for size in SectorSize::ALL {
            assert_eq!(size.to_string().parse::<SectorSize>().unwrap(), size);
        }
        for bad in ["", "PoRep", "porep ", "winning"] {
            assert!(bad.parse::<ProofKind>().is_err(), "{bad}");
        }
        for bad in ["", "2kib", "4KiB", "2048"] {
            assert!(bad.parse::<SectorSize>().is_err(), "{bad}");
        }
    }
}
