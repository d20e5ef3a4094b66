//! The pages of the documents, with the figures that have no command in their own line.
//!
//! Not the table of commands, whose page has no figures of its own.

use house::workspace::top;

use crate::commands::has_command;
use crate::figures::{figures, figures_below};

/// Pages whose figures have their commands on the page itself, in a form of its own.
const OWN_COMMANDS: [&str; 2] = ["docs/nightly.md", "docs/numbers.md"];

/// A figure of a page, in the section of this name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Figure {
    pub(crate) page: String,
    pub(crate) section: String,
    pub(crate) text: String,
}

fn slug(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the figures of a page that have no command in their line. Blocks of code are
/// commands and what they print.
pub(crate) fn page_figures(page: &str, text: &str) -> Vec<Figure> {
    let (mut section, mut is_code) = (String::new(), false);
    let mut heading = None;
    let mut found = Vec::new();
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence {
            continue;
        }
        if !line.starts_with('|') {
            heading = None;
        }
        if line.starts_with('#') {
            section = slug(line);
        } else if !has_command(line) {
            let below = heading.map(|heading| figures_below(heading, line));
            let all = figures(line).into_iter().chain(below.unwrap_or_default());
            found.extend(all.map(|text| Figure {
                page: page.to_owned(),
                section: section.clone(),
                text,
            }));
        }
        if line.starts_with('|') {
            heading = heading.or(Some(line));
        }
    }
    found
}

pub(crate) fn pages() -> Vec<String> {
    let docs = top().0.join("docs");
    let names = std::fs::read_dir(docs).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let docs = names.filter(|name| name.ends_with(".md"));
    let docs = docs.map(|name| format!("docs/{name}"));
    let mut pages: Vec<_> = ["README.md", "ARCHITECTURE.md"]
        .map(str::to_owned)
        .into_iter()
        .chain(docs)
        .filter(|page| !OWN_COMMANDS.contains(&page.as_str()))
        .collect();
    pages.sort();
    pages
}

#[test]
fn a_figure_with_a_command_in_its_line_is_left_out() {
    let page = "# T\n\n## A b, c\n5 s\n```\n6 s\n```\n7 s by `cuzk bench x`\n";
    let figures = page_figures("p", page);
    assert_eq!(figures.len(), 1);
    assert_eq!((&*figures[0].section, &*figures[0].text), ("a-b-c", "5 s"));
    let page = "| a | ratio |\n|---|---|\n| b | 3.5 |\n| `cuzk bench x` | 4.5 |\n\n| c |\n| 5 |\n";
    let figures = page_figures("p", page);
    assert_eq!(figures.len(), 1);
    assert_eq!(figures[0].text, "3.5 times");
}
