//! A figure of a card that nobody here had is said to be computed.
//!
//! Not the computation. The invariant: the words stand in the sentence that names the card, or in
//! one beside it.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::path::{Path, PathBuf};

use house::sources::Sources;
use house::workspace::{source_files, top};

/// Cards on which nothing was measured.
const CARDS: [&str; 4] = ["A100", "B200", "H100", "H200"];

/// Words for a figure that was computed: "computed", "by computation".
const COMPUTED: [&str; 2] = ["computed", "computation"];

/// Files in which a card's name has no figure beside it, each with a reason.
const NAMES_ONLY: [(&str, &str); 1] = [(
    "cuzk/src/machine/nvidia.rs",
    "a line of the driver's table, in a test",
)];

/// Returns a line of a comment or of a document without its marks, and none for a line of code.
fn text_of(line: &str, is_document: bool) -> Option<&str> {
    let line = line.trim();
    if is_document {
        return (!line.is_empty()).then_some(line);
    }
    let is_comment = line.starts_with("//") || line.starts_with('#') || line.starts_with('*');
    let text = line.trim_start_matches(['/', '!', '#', '*']).trim();
    (is_comment && !text.is_empty()).then_some(text)
}

/// Returns paragraphs: the comments or texts that no other line divides, and each other line.
fn paragraphs(text: &str, is_document: bool) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in text.lines() {
        match text_of(line, is_document) {
            Some(text) => {
                let last = found.last_mut().unwrap();
                last.push_str(text);
                last.push(' ');
            }
            None => found.extend([line.to_owned(), String::new()]),
        }
    }
    found
}

/// Returns the sentences that name a card near which nothing says that the figure was computed.
fn unsaid(text: &str, is_document: bool) -> Vec<String> {
    let mut found = Vec::new();
    for paragraph in paragraphs(text, is_document) {
        let sentences: Vec<_> = paragraph.split_inclusive(". ").collect();
        for (at, sentence) in sentences.iter().enumerate() {
            let names = CARDS.iter().any(|card| sentence.contains(card));
            let near = sentences[at.saturating_sub(1)..]
                .iter()
                .take(if at == 0 { 2 } else { 3 });
            let near: String = near.copied().collect::<String>().to_lowercase();
            if names && !COMPUTED.iter().any(|word| near.contains(word)) {
                found.push(sentence.trim().to_owned());
            }
        }
    }
    found
}

/// Adds the documents and configurations of a folder.
fn add_texts(folder: &Path, found: &mut Vec<PathBuf>) {
    let top = top().0;
    for entry in std::fs::read_dir(top.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        let extension = path.extension().and_then(|end| end.to_str());
        if entry.file_type().unwrap().is_dir() {
            add_texts(&path, found);
        } else if matches!(extension, Some("toml" | "md")) {
            found.push(path);
        }
    }
}

#[test]
fn a_figure_of_a_card_is_said_to_be_computed() {
    let top = top();
    let mut paths = source_files(&top).unwrap();
    let pages = ["README.md", "ARCHITECTURE.md", "benches/README.md"];
    paths.extend(pages.map(PathBuf::from));
    for folder in ["configs", "docs"] {
        add_texts(Path::new(folder), &mut paths);
    }
    let itself = Path::new("house/tests/computed.rs");
    let mut named = 0;
    let mut found = Vec::new();
    for path in paths.iter().filter(|path| *path != itself) {
        let text = top.text(path).unwrap();
        let is_document = path.extension().is_some_and(|end| end == "md");
        let exempt = NAMES_ONLY.iter().find(|(of, _)| Path::new(of) == path);
        let names = CARDS.iter().any(|card| text.contains(card));
        if let Some((of, reason)) = exempt {
            assert!(names, "{of}: no card ({reason})");
            continue;
        }
        named += usize::from(names);
        let unsaid = unsaid(&text, is_document);
        found.extend(
            unsaid
                .into_iter()
                .map(|text| format!("{}: {text}", path.display())),
        );
    }
    assert!(found.is_empty(), "say that it was computed: {found:#?}");
    assert!(named > 3, "only {named} files name a card");
}

#[test]
fn a_figure_without_its_origin_is_found() {
    let count = |text: &str, is_document| unsaid(text, is_document).len();
    let good = "// They take an H100 5 s. That is\n// computed, not measured.\n";
    assert_eq!(count(good, false), 0);
    assert_eq!(
        count(
            "# By computation it takes long. An H100 has 1 GiB.\n",
            false
        ),
        0
    );
    assert_eq!(count("// They take an H100 5 s.\n", false), 1);
    // Two sentences away, or in another paragraph, nobody sees it.
    let far = "// They take an H100 5 s. That is long. It is so. It was computed.\n";
    assert_eq!(count(far, false), 1);
    assert_eq!(
        count("// On an H100: 5 s.\n\n// It was computed.\n", false),
        1
    );
    assert_eq!(count("let h100 = \"H100\"; // computed\n", false), 0);
    assert_eq!(count("let seconds = 5; // on an H100\n", false), 1);
    assert_eq!(count("An A100 takes 5 s.\n\nComputed.\n", true), 1);
    assert_eq!(count("An A100 takes 5 s, as computed.\n", true), 0);
}
