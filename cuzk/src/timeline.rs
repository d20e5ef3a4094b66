//! `--timeline FILE`: the times of all stages, as a picture or as a trace.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use cuzk_core::timeline::{Names, Span, WaterfallOptions, chrome_trace, waterfall_svg};

use crate::failure::Failure;
use crate::output_path::OutputPath;

/// The file for a timeline. Its extension selects the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimelineFile {
    path: PathBuf,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A waterfall for people.
    Svg,
    /// The Trace Event Format, for Perfetto.
    Trace,
}

impl TimelineFile {
    /// Returns the parser of the argument.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        PathBufValueParser::new().try_map(Self::new)
    }

    fn new(path: PathBuf) -> Result<Self, &'static str> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let format = match extension {
            Some("svg") => Format::Svg,
            Some("json") => Format::Trace,
            _ => return Err("end it in .svg for a picture or .json for a trace"),
        };
        Ok(Self { path, format })
    }
}

/// A timeline whose file was checked, as far as a file can be checked before it is written.
#[derive(Debug)]
pub(crate) struct Drawing {
    out: OutputPath,
    format: Format,
}

impl Drawing {
    pub(crate) fn new(file: &TimelineFile) -> Result<Self, Failure> {
        Ok(Self {
            out: OutputPath::new(&file.path)?,
            format: file.format,
        })
    }

    pub(crate) fn out(&self) -> &OutputPath {
        &self.out
    }

    /// Writes `spans` under `title`, with the names of devices and jobs.
    pub(crate) fn write(&self, spans: &[Span], names: Names, title: &str) -> Result<(), Failure> {
        let bytes = match self.format {
            Format::Svg => {
                let title = title.to_owned();
                let options = WaterfallOptions {
                    title,
                    names,
                    ..WaterfallOptions::default()
                };
                waterfall_svg(spans, &options).into_bytes()
            }
            Format::Trace => serde_json::to_vec(&chrome_trace(spans, &names))
                .map_err(|error| Failure::failed(error.to_string()))?,
        };
        self.out.write(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_says_what_it_is() {
        let format = |path: &str| TimelineFile::new(path.into()).map(|file| file.format);
        assert_eq!(format("a.b/run.svg"), Ok(Format::Svg));
        assert_eq!(format("run.json"), Ok(Format::Trace));
        for other in ["", "svg", "run", "run.svg.gz", "run.SVG", ".json"] {
            assert!(format(other).unwrap_err().contains(".svg"), "{other}");
        }
    }
}
