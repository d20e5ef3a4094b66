//! One line of `cuzk doctor`.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Ok,
    /// It proves, but not as well as it could, or something could not be looked at.
    Warning,
    /// It does not prove, or the daemon does not start.
    Error,
}

impl Level {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// The state of one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The thing, in a word or two.
    pub(crate) topic: &'static str,
    pub(crate) level: Level,
    /// How it is.
    pub(crate) text: String,
    /// The remedy; none if all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(topic: &'static str, text: impl Into<String>) -> Self {
        Self {
            topic,
            level: Level::Ok,
            text: text.into(),
            advice: None,
        }
    }

    pub(super) fn warning(
        topic: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Warning,
            advice: Some(advice.into()),
            ..Self::ok(topic, text)
        }
    }

    pub(super) fn error(
        topic: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Error,
            ..Self::warning(topic, text, advice)
        }
    }
}
