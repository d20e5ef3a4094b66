//! The versions of the argument's transcript.

/// The version of the transcript. A network accepts one from a certain upgrade on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AggregateVersion {
    /// SnarkPack's first: the first round's challenge does not depend on its cross terms.
    V1,
    /// The second, of FIP-0030 and later: every challenge depends on all that came before.
    #[default]
    V2,
}
