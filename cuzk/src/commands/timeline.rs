//! `--timeline FILE`: when everything ran, as a picture or as a trace.

use std::path::PathBuf;
use std::str::FromStr;

use cuzk_core::timeline::{Span, WaterfallOptions, chrome_trace, waterfall_svg};

use super::write;
use crate::failure::Failure;

/// Where a timeline goes, and in which form: the file's extension says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimelineFile {
    path: PathBuf,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A waterfall for eyes.
    Svg,
    /// The Trace Event Format, for Perfetto.
    Trace,
}

impl FromStr for TimelineFile {
    type Err = String;

    fn from_str(path: &str) -> Result<Self, String> {
        let path = PathBuf::from(path);
        let extension = path.extension().and_then(|extension| extension.to_str());
        let format = match extension {
            Some("svg") => Format::Svg,
            Some("json") => Format::Trace,
            _ => return Err("end it in .svg for a picture or .json for a trace".to_owned()),
        };
        Ok(Self { path, format })
    }
}

impl TimelineFile {
    /// Writes `spans` under `title`.
    pub(crate) fn write(&self, spans: &[Span], title: &str) -> Result<(), Failure> {
        let bytes = match self.format {
            Format::Svg => {
                let title = title.to_owned();
                let options = WaterfallOptions {
                    title,
                    ..WaterfallOptions::default()
                };
                waterfall_svg(spans, &options).into_bytes()
            }
            Format::Trace => serde_json::to_vec(&chrome_trace(spans))
                .map_err(|error| Failure::failed(error.to_string()))?,
        };
        write(&self.path, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_says_what_it_is() {
        let format = |path: &str| path.parse::<TimelineFile>().map(|file| file.format);
        assert_eq!(format("a.b/run.svg"), Ok(Format::Svg));
        assert_eq!(format("run.json"), Ok(Format::Trace));
        for other in ["", "svg", "run", "run.svg.gz", "run.SVG", ".json"] {
            assert!(format(other).unwrap_err().contains(".svg"), "{other}");
        }
    }
}
