//! The table of `docs/numbers.md`: the commands of the figures of a page.

use std::collections::BTreeSet;

use crate::pages::Figure;

/// A row of the page: figures of a page or of a section, with commands.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) page: String,
    section: Option<String>,
    /// None stands for all.
    pub(crate) figures: Option<BTreeSet<String>>,
    pub(crate) commands: String,
}

impl Row {
    pub(crate) fn is_about(&self, figure: &Figure) -> bool {
        let section = self.section.as_ref();
        self.page == figure.page && section.is_none_or(|section| *section == figure.section)
    }

    pub(crate) fn has(&self, figure: &Figure) -> bool {
        let figures = self.figures.as_ref();
        self.is_about(figure) && figures.is_none_or(|figures| figures.contains(&figure.text))
    }
}

pub(crate) fn rows(text: &str) -> Vec<Row> {
    let table = text.lines().skip_while(|line| !line.starts_with("|---"));
    let lines = table.skip(1).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [place, figures, commands] = cells[..] else {
            unreachable!("{line}");
        };
        let (page, section) = match place.split_once('#') {
            Some((page, section)) => (page, Some(section.to_owned())),
            None => (place, None),
        };
        let list = || figures.split(", ").map(str::to_owned).collect();
        Row {
            page: page.to_owned(),
            section,
            figures: (figures != "all").then(list),
            commands: commands.to_owned(),
        }
    };
    lines.map(row).collect()
}
