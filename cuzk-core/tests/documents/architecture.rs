//! What the documents say of files and error codes, held against the sources.

use std::fs;
use std::path::{Path, PathBuf};

use cuzk_core::error::ErrorCode;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the places in the repository to which a document links. The path is empty for the document
/// itself, and the name of the section for a whole file.
fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    let targets = targets.filter(|target| !target.is_empty() && !target.contains("://"));
    targets.map(|target| target.split_once('#').unwrap_or((target, "")))
}

/// Returns the names by which links reach the sections of a document.
fn sections(text: &str) -> Vec<String> {
    let mut is_code = false;
    let headings = text.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    let name = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|&letter| {
            letter.is_alphanumeric() || letter == '-' || letter == '_' || letter == ' '
        });
        kept.map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    };
    headings.map(name).collect()
}

/// Returns the paths of the documents, among them every page of `docs/`.
fn documents() -> Vec<PathBuf> {
    let names = [
        "README.md",
        "ARCHITECTURE.md",
        "benches/README.md",
        "clients/go/README.md",
    ];
    let pages = fs::read_dir(root().join("docs")).unwrap();
    let pages = pages.map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    names
        .iter()
        .map(|name| root().join(name))
        .chain(pages)
        .collect()
}

#[test]
fn links_of_documents_lead_somewhere() {
    let mut all = 0;
    for path in documents() {
        let document = path.display();
        let text = fs::read_to_string(&path).unwrap();
        for (link, section) in links(&text) {
            let target = match link {
                "" => path.clone(),
                _ => path.parent().unwrap().join(link),
            };
            assert!(target.exists(), "{document}: {link}");
            if !section.is_empty() {
                let there = sections(&fs::read_to_string(&target).unwrap());
                let is_there = there.iter().any(|name| name == section);
                assert!(is_there, "{document}: {link}#{section}: {there:?}");
            }
            all += 1;
        }
    }
    assert!(all >= 40, "{all}");
}

/// The page for operators has a row for each code, with its exit code and its remedy.
#[test]
fn troubleshooting_lists_every_code() {
    let text = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| CUZK-"));
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), ErrorCode::ALL.len());
    for (code, row) in ErrorCode::ALL.into_iter().zip(rows) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, name, exit, error, advice, _] = cells[..] else {
            panic!("{row}")
        };
        assert_eq!(name, code.to_string());
        let expected = match code {
            ErrorCode::Signal => "128 + signal".to_owned(),
            code => code.exit_code().to_string(),
        };
        assert_eq!(exit, expected, "{row}");
        assert!(error.ends_with('.') && advice.ends_with('.'), "{row}");
        // A sentence of the page begins with a capital letter.
        let (advice, remedy) = (advice.to_lowercase(), code.remedy().to_lowercase());
        assert!(advice.contains(&remedy), "{row}: {remedy}");
    }
}
