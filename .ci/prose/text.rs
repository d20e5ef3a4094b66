//! A passage of text, and Markdown taken apart into passages.

/// Which budget a passage belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Documents, help texts, errors and the comments of shipped configurations.
    Visible,
    /// Every other comment and message.
    Code,
}

impl Class {
    pub const ALL: [Self; 2] = [Self::Visible, Self::Code];

    pub fn name(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Code => "code",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Document,
    /// The first paragraph of a docstring.
    DocstringStart,
    Docstring,
    Comment,
    Message,
}

/// A paragraph, list item, table cell, comment or message.
#[derive(Debug)]
pub struct Passage {
    pub class: Class,
    pub kind: Kind,
    pub line: usize,
    pub text: String,
}

/// Joins the lines of paragraphs and list items. Table cells end at a line break. Headings and
/// code are left out.
pub fn paragraphs(lines: &[(usize, &str)]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    let mut is_code = false;
    for &(at, line) in lines {
        let text = line.trim();
        if text.starts_with("```") {
            is_code = !is_code;
            is_open = false;
            continue;
        }
        // Four spaces after a blank line are code, and inside a list item they go on with it.
        let is_indented_code = !is_open && line.starts_with("    ");
        if is_code || is_indented_code {
            continue;
        }
        if text.is_empty() || text.starts_with('#') || text.starts_with("<!--") {
            is_open = false;
        } else if text.starts_with('|') {
            is_open = false;
            let cells = text.trim_matches('|').split(" | ");
            let cells = cells.flat_map(|cell| cell.split("<br>"));
            let cells = cells.map(str::trim).filter(|cell| !cell.is_empty());
            found.extend(cells.map(|cell| (at, cell.to_owned())));
        } else if let Some(item) = list_item(text) {
            found.push((at, item.to_owned()));
            is_open = true;
        } else if let (true, Some((_, open))) = (is_open, found.last_mut()) {
            open.push(' ');
            open.push_str(text);
        } else {
            found.push((at, text.to_owned()));
            is_open = true;
        }
    }
    found
}

/// Returns the text of a list item without its mark.
fn list_item(text: &str) -> Option<&str> {
    if let Some(item) = text.strip_prefix("* ").or_else(|| text.strip_prefix("- ")) {
        return Some(item);
    }
    let (number, item) = text.split_once(". ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(item)
}

/// Replaces each code span by one word, and each link by its text.
pub fn without_markup(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.split('`').enumerate() {
        out.push_str(if at % 2 == 0 { part } else { "`x`" });
    }
    let mut plain = String::new();
    let mut rest = out.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain.retain(|symbol| !matches!(symbol, '*' | '[' | ']'));
    plain
}

/// Splits a passage into sentences.
pub fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut sentence = String::new();
    for word in text.split_whitespace() {
        let begins_one = word.starts_with(|first: char| {
            first.is_uppercase() || first.is_ascii_digit() || matches!(first, '`' | '"' | '(')
        });
        if begins_one && ends_sentence(&sentence) {
            found.push(std::mem::take(&mut sentence));
        }
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
    }
    if !sentence.is_empty() {
        found.push(sentence);
    }
    found
}

fn ends_sentence(text: &str) -> bool {
    const ABBREVIATIONS: [&str; 4] = ["e.g.", "i.e.", "vs.", "cf."];
    let text = text.trim_end_matches(['"', ')', '\'']);
    text.ends_with(['.', '!', '?']) && !ABBREVIATIONS.iter().any(|known| text.ends_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let lines: Vec<_> = text.lines().enumerate().collect();
        paragraphs(&lines)
            .into_iter()
            .map(|(_, text)| text)
            .collect()
    }

    #[test]
    fn markdown_is_taken_apart() {
        let text = "# Head\n\nOne\ntwo.\n\n* three\n  four\n* five\n\n```\ncode\n```\n\
                    \n    code\n\n| a | b<br>c |\n|---|---|\n| d | |\n1. six";
        let expected = [
            "One two.",
            "three four",
            "five",
            "a",
            "b",
            "c",
            "---|---",
            "d",
            "six",
        ];
        assert_eq!(found(text), expected);
    }

    #[test]
    fn sentences_end_before_a_capital() {
        let text = "One two. Three e.g. Four of 1.5 s (six.) `x` seven? Yes";
        let expected = [
            "One two.",
            "Three e.g. Four of 1.5 s (six.)",
            "`x` seven?",
            "Yes",
        ];
        assert_eq!(sentences(text), expected);
    }

    #[test]
    fn markup_is_no_words() {
        let text = "See [the *page*](a/b.md), `cuzk prove --out`, now.";
        assert_eq!(without_markup(text), "See the page, `x`, now.");
    }
}
