//! Blocks of a page: paragraphs, items of lists and tables, each in its section.
//!
//! Not the figures in them. The invariant: a block never spans a heading, and blocks of code, which
//! are commands and what they print, are left out.

use std::mem;

/// A paragraph, an item of a list, or a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The number of its first line.
    pub(crate) line: usize,
    /// Counts the headings before it.
    pub(crate) section: usize,
    pub(crate) kind: Kind,
    /// Rows of a table, with its heading and without the line below it. Else one text.
    pub(crate) rows: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Paragraph,
    Item,
    Table,
}

fn kind_of(line: &str) -> Kind {
    match line.trim_start() {
        line if line.starts_with('|') => Kind::Table,
        line if line.starts_with("* ") || line.starts_with("- ") => Kind::Item,
        _ => Kind::Paragraph,
    }
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    section: usize,
    line: usize,
    kind: Kind,
    rows: Vec<String>,
}

impl Reader {
    fn end(&mut self) {
        let mut rows = mem::take(&mut self.rows);
        if rows.is_empty() {
            return;
        }
        if self.kind == Kind::Table {
            rows.retain(|row| !row.starts_with("|--"));
        } else {
            rows = vec![rows.join(" ")];
        }
        self.blocks.push(Block {
            line: self.line,
            section: self.section,
            kind: self.kind,
            rows,
        });
    }

    fn add(&mut self, number: usize, line: &str) {
        let kind = kind_of(line);
        // The next line of an item looks like a paragraph.
        let goes_on = kind == self.kind && kind != Kind::Item
            || kind == Kind::Paragraph && self.kind == Kind::Item;
        if self.rows.is_empty() || !goes_on {
            self.end();
            (self.line, self.kind) = (number, kind);
        }
        self.rows.push(line.trim().to_owned());
    }
}

/// Returns the blocks of a page, in its order.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut reader = Reader::default();
    let mut is_code = false;
    for (at, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let is_heading = line.starts_with('#');
        if is_code || is_fence || is_heading || line.trim().is_empty() {
            reader.end();
            reader.section += usize::from(is_heading && !is_code);
        } else {
            reader.add(at + 1, line);
        }
    }
    reader.end();
    reader.blocks
}

#[test]
fn a_page_is_read_block_by_block() {
    let page = "# A\none\ntwo\n\n* three\n  four\n* five\n```\n# six\n```\n## B\n| h |\n|---|\n| r |\nseven";
    let found = blocks(page);
    let short: Vec<_> = found
        .iter()
        .map(|block| (block.line, block.section, block.kind, block.rows.join("/")))
        .collect();
    let block = |line, section, kind, rows: &str| (line, section, kind, rows.to_owned());
    assert_eq!(
        short,
        [
            block(2, 1, Kind::Paragraph, "one two"),
            block(5, 1, Kind::Item, "* three four"),
            block(7, 1, Kind::Item, "* five"),
            block(12, 2, Kind::Table, "| h |/| r |"),
            block(15, 2, Kind::Paragraph, "seven"),
        ]
    );
}
