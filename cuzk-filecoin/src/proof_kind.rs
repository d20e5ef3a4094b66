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

/// Returns the kind whose name begins in the same way. The first letters tell the kinds
/// apart.
fn nearest(name: &str) -> Option<ProofKind> {
    const LETTERS: usize = 4;
    let letters = |name: &str| {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        let letters = letters.map(|letter| letter.to_ascii_lowercase());
        letters.take(LETTERS).collect::<String>()
    };
    let wanted = letters(name);
    ProofKind::ALL
        .into_iter()
        .find(|kind| letters(kind.name()) == wanted)
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
                let all = "use one of porep, winning-post, window-post, snap-deals";
                let advice = nearest(name).map_or_else(
                    || all.to_owned(),
                    |kind| format!("did you mean {kind}? {all}"),
                );
                Error::request("kind", format!("no such kind of proof: {name:?}"), advice)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::ProofKind;
    use crate::sector_size::SectorSize;

    #[test]
    fn a_name_that_is_nearly_right_is_answered_with_the_right_one() {
        for (name, nearest) in [
            ("windowpost", "did you mean window-post?"),
            ("Window_PoSt", "did you mean window-post?"),
            ("winning", "did you mean winning-post?"),
            ("PoRep", "did you mean porep?"),
            ("snap", "did you mean snap-deals?"),
            ("sealing", "use one of porep"),
            ("", "use one of porep"),
        ] {
            let error = name.parse::<ProofKind>().unwrap_err().to_string();
            assert!(error.contains(nearest), "{error}");
        }
    }

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
        for bad in ["", "2 kib", "4KiB", "2049"] {
            assert!(bad.parse::<SectorSize>().is_err(), "{bad}");
        }
    }
}
