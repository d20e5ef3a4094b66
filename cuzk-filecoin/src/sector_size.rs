//! Sector sizes of the registered proofs.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Bytes of a tree's node.
const NODE_BYTES: u64 = 32;

/// A sector size for which proofs are registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectorSize {
    /// 2 KiB, for tests.
    KiB2,
    /// 8 MiB, for tests.
    MiB8,
    /// 512 MiB, for test networks.
    MiB512,
    /// 32 GiB.
    GiB32,
    /// 64 GiB.
    GiB64,
}

impl SectorSize {
    /// Every size, ascending.
    pub const ALL: [Self; 5] = [
        Self::KiB2,
        Self::MiB8,
        Self::MiB512,
        Self::GiB32,
        Self::GiB64,
    ];

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::KiB2 => 2 << 10,
            Self::MiB8 => 8 << 20,
            Self::MiB512 => 512 << 20,
            Self::GiB32 => 32 << 30,
            Self::GiB64 => 64 << 30,
        }
    }

    /// Returns true if networks use sectors of this size. Insecure parameters for them do
    /// harm.
    #[must_use]
    pub const fn is_for_networks(self) -> bool {
        matches!(self, Self::MiB512 | Self::GiB32 | Self::GiB64)
    }

    /// The number of 32-byte nodes in a sector, a power of two.
    #[must_use]
    pub(crate) const fn nodes(self) -> usize {
        (self.bytes() / NODE_BYTES) as usize
    }

    /// The size of `bytes` bytes, if proofs are registered for it.
    #[must_use]
    pub fn from_bytes(bytes: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.bytes() == bytes)
    }

    /// The sector size of a registered proof.
    pub(crate) fn registered(size: filecoin_proofs::SectorSize) -> Result<Self, Error> {
        let bytes = u64::from(size);
        Self::from_bytes(bytes).ok_or_else(|| {
            Error::request(
                "sector_size",
                format!("sectors of {bytes} bytes are not supported"),
                "use one of 2KiB, 8MiB, 512MiB, 32GiB, 64GiB",
            )
        })
    }

    /// The size's name, as [`FromStr`] reads it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KiB2 => "2KiB",
            Self::MiB8 => "8MiB",
            Self::MiB512 => "512MiB",
            Self::GiB32 => "32GiB",
            Self::GiB64 => "64GiB",
        }
    }
}

impl fmt::Display for SectorSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SectorSize {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|size| size.name().eq_ignore_ascii_case(name))
            .or_else(|| Self::from_bytes(name.parse().ok()?))
            .ok_or_else(|| {
                Error::request(
                    "sector_size",
                    format!("no such sector size: {name:?}"),
                    "use one of 2KiB, 8MiB, 512MiB, 32GiB, 64GiB",
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_in_any_case_and_as_its_bytes() {
        for (name, size) in [
            ("2KiB", SectorSize::KiB2),
            ("2kib", SectorSize::KiB2),
            ("2048", SectorSize::KiB2),
            ("32GIB", SectorSize::GiB32),
            ("34359738368", SectorSize::GiB32),
        ] {
            assert_eq!(name.parse::<SectorSize>().unwrap(), size);
        }
        for name in ["2", "2KB", "2 KiB", "-2048", "0", ""] {
            let error = name.parse::<SectorSize>().unwrap_err().to_string();
            assert!(error.contains("use one of 2KiB"), "{error}");
        }
    }

    #[test]
    fn networks_use_sectors_of_512_mib_and_more() {
        let used = SectorSize::ALL.map(SectorSize::is_for_networks);
        assert_eq!(used, [false, false, true, true, true]);
    }
}
