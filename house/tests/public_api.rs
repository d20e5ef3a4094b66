//! The public API of each library equals the listing that is committed in `house/api`.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use house::api;
use house::listing::difference;
use house::modules::Crate;
use house::sources::Sources;
use house::workspace::{members, top};

const UPDATE: &str = "UPDATE_API=1 cargo test -p house --test public_api";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("api")
}

/// Returns the listing of each library of the workspace, by the name of its file.
fn listings() -> BTreeMap<String, Vec<String>> {
    let top = top();
    let mut listings = BTreeMap::new();
    for member in members(&top).unwrap() {
        let root = member.folder.join("src/lib.rs");
        if !member.is_for_development && top.has(&root) {
            let modules = Crate::read(&member.name, &root, &top).unwrap();
            listings.insert(format!("{}.txt", member.name), api::listing(&modules));
        }
    }
    listings
}

fn committed() -> BTreeSet<String> {
    let entries = fs::read_dir(folder()).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn update(listings: &BTreeMap<String, Vec<String>>) {
    for stale in committed()
        .iter()
        .filter(|file| !listings.contains_key(*file))
    {
        fs::remove_file(folder().join(stale)).unwrap();
    }
    for (file, lines) in listings {
        fs::write(folder().join(file), lines.join("\n") + "\n").unwrap();
    }
}

#[test]
fn the_public_apis_are_the_committed_ones() {
    let listings = listings();
    if std::env::var_os("UPDATE_API").is_some() {
        update(&listings);
    }
    let mut report = String::new();
    for (file, lines) in &listings {
        let text = fs::read_to_string(folder().join(file)).unwrap_or_default();
        if let Some(difference) = difference(&text, lines) {
            report += &format!("house/api/{file}:\n{difference}");
        }
    }
    for file in committed()
        .iter()
        .filter(|file| !listings.contains_key(*file))
    {
        report += &format!("house/api/{file}: no library of this name\n");
    }
    assert!(
        report.is_empty(),
        "the public API changed; if it should, run `{UPDATE}` and commit the files\n{report}"
    );
}

/// A made-up crate: `lib.rs` and two private modules.
const LIB: &str = "
    mod shape;
    mod left {
        pub struct Unreachable;
        impl Unreachable { pub fn method(&self) {} }
    }
    pub mod tool {
        pub use crate::shape::*;
        #[cfg(feature = \"extra\")]
        pub fn extra() {}
        #[cfg(test)]
        pub fn in_tests() {}
        #[doc(hidden)]
        pub fn hidden() {}
    }
    pub use shape::{Shape as Form, shape};
    pub use other::Thing;
    fn private() {}
";
const SHAPE: &str = "
    #[derive(Clone)]
    pub enum Shape { Circle { radius: u32 }, Point }
    impl Shape {
        pub const SIDES: u32 = 0;
        pub fn area(&self, mut scale: u32) -> Option<u32> { None }
        fn private(&self) {}
    }
    impl std::fmt::Display for Shape {}
    pub fn shape<T: Into<Shape>>(from: T) -> Shape where T: Copy { from.into() }
    pub trait Draw: Sized {
        type Ink: Copy;
        fn draw(&self);
        fn twice(&self) { self.draw(); }
    }
    impl Iterator for Shape { type Item = u8; }
    macro_rules! draws { ($ty:ty) => { impl Draw for $ty {} } }
    draws!(u8);
    pub(crate) fn of_the_crate() {}
";

fn listing_of(lib: &str, shape: &str) -> Vec<String> {
    let sources: BTreeMap<PathBuf, String> = [("src/lib.rs", lib), ("src/shape.rs", shape)]
        .map(|(path, text)| (PathBuf::from(path), text.to_owned()))
        .into();
    api::listing(&Crate::read("made-up", Path::new("src/lib.rs"), &sources).unwrap())
}

/// Returns the difference that replacing `before` by `after` in `shape.rs` makes.
fn change(before: &str, after: &str) -> Option<String> {
    assert!(SHAPE.contains(before), "no `{before}` in the made-up crate");
    let old = listing_of(LIB, SHAPE).join("\n");
    difference(&old, &listing_of(LIB, &SHAPE.replace(before, after)))
}

#[test]
fn a_made_up_crate_is_listed() {
    let expected = r#"
made_up: pub mod
made_up::Form: impl Clone for Shape
made_up::Form: impl Display for Shape
made_up::Form: impl Iterator for Shape { type Item = u8; }
made_up::Form: pub enum Shape
made_up::Form::Circle: Circle { radius: u32 }
made_up::Form::Point: Point
made_up::Form::SIDES: pub const SIDES: u32
made_up::Form::area: pub fn area(&self, scale: u32) -> Option<u32>
made_up::Thing: pub use other::Thing
made_up::shape: pub fn shape<T: Into<Shape>>(from: T) -> Shape where T: Copy
made_up::tool: pub mod
made_up::tool::Draw: impl Draw for $ty, by draws!(u8)
made_up::tool::Draw: pub trait Draw: Sized
made_up::tool::Draw::Ink: type Ink: Copy
made_up::tool::Draw::draw: fn draw(&self)
made_up::tool::Draw::twice: fn twice(&self) { .. }
made_up::tool::Shape: pub use made_up::Form
made_up::tool::extra: #[cfg(feature = "extra")] pub fn extra()
made_up::tool::shape: pub use made_up::shape"#;
    let listing = listing_of(LIB, SHAPE);
    assert_eq!(difference(expected.trim_start(), &listing), None);
    assert!(listing.is_sorted());
}

#[test]
fn a_new_function_changes_the_listing() {
    assert_eq!(
        change("fn private(&self)", "pub fn name(&self) -> &str").as_deref(),
        Some("+ made_up::Form::name: pub fn name(&self) -> &str\n")
    );
}

#[test]
fn a_changed_signature_changes_the_listing() {
    assert_eq!(
        change("from: T)", "from: &T)").as_deref(),
        Some(
            "- made_up::shape: pub fn shape<T: Into<Shape>>(from: T) -> Shape where T: Copy\n\
             + made_up::shape: pub fn shape<T: Into<Shape>>(from: &T) -> Shape where T: Copy\n"
        )
    );
}

#[test]
fn a_removed_variant_changes_the_listing() {
    assert_eq!(
        change(", Point", "").as_deref(),
        Some("- made_up::Form::Point: Point\n")
    );
}

#[test]
fn private_items_do_not_change_the_listing() {
    assert_eq!(change("fn private(&self)", "fn other(&self, a: u8)"), None);
    assert_eq!(change("pub(crate) fn of_the_crate", "fn another"), None);
    assert_eq!(change("{ None }", "{ Some(1) }"), None);
}
