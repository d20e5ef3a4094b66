//! A source is text, and its mutants are text.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use cuzk_mutants::render::{Rendered, render};
use cuzk_mutants::sites::keys;
use cuzk_mutants::walk::sites;

/// Returns the names of a source's mutants, without the text of the line.
fn names(text: &str) -> Vec<String> {
    let found = sites(text).unwrap();
    let keys = keys(text, &found).into_iter().flatten();
    keys.map(|key| key.split(" @ ").next().unwrap().to_owned())
        .collect()
}

/// Writes a source with all its mutants but those that are left out.
fn rendered(text: &str, without: &[u32]) -> Rendered {
    let found = sites(text).unwrap();
    let mut next = 0;
    let mut number = || {
        next += 1;
        Some(next).filter(|number| !without.contains(number))
    };
    let of = |site: &cuzk_mutants::sites::Site| site.changes.iter().map(|_| number()).collect();
    let numbers: Vec<Vec<_>> = found.iter().map(of).collect();
    render(text, &found, &numbers)
}

/// Returns the text with all mutants, in which `is(1)` asks for the first one.
fn text(source: &str) -> String {
    rendered(source, &[]).text.replace("crate::__mutants::", "")
}

#[test]
fn an_operator_has_its_mutants() {
    assert_eq!(
        names("fn f(a: u8) { g(a < 1 || !a) }"),
        [
            "replace f with ()",
            "replace || with && in f",
            "replace < with == in f",
            "replace < with > in f",
            "replace < with <= in f",
            "delete ! in f",
        ]
    );
    assert_eq!(
        names("impl<T> A for B<T> { fn f(&mut self) { self.x += -1 } }"),
        [
            "replace <impl A for B<T>>::f with ()",
            "replace += with -= in <impl A for B<T>>::f",
            "replace += with *= in <impl A for B<T>>::f",
            "delete - in <impl A for B<T>>::f",
        ]
    );
}

#[test]
fn an_arm_goes_if_another_takes_its_place() {
    assert_eq!(
        names("fn f() -> X { match x { 1 if a => y, B::C => z, _ => w } }"),
        [
            "replace f -> X with Default::default()",
            "delete match arm 1 in f",
            "replace match guard with true in f",
            "replace match guard with false in f",
            "delete match arm B::C in f",
        ]
    );
    let without_rest = names("fn f() -> X { match x { A => y, B => z } }");
    assert_eq!(without_rest, ["replace f -> X with Default::default()"]);
}

#[test]
fn some_code_has_no_mutants() {
    for source in [
        "const A: usize = 1 + 2;",
        "static A: usize = 1 + 2;",
        "const fn f() -> usize { 1 + 2 }",
        "fn f() -> ! { let a: [u8; 1 + 2] = [0; 1 + 2]; const B: u8 = 1 + 2; loop {} }",
        "#[cfg(test)] mod tests { fn f() -> usize { 1 + 2 } }",
        "#[test] fn f() { g(1 + 2) }",
        "#[cfg(loom)] fn f() -> usize { 1 + 2 }",
        "unsafe fn f() -> usize { 1 + 2 }",
        "fn f() -> ! { unsafe { g(1 + 2) } }",
        "fn f() -> ! { m!(1 + 2) }",
        "fn new() -> A { A }",
        "impl Debug for A { fn fmt(&self) -> Result { x() } }",
        "fn f() -> bool { true }",
        "fn f() {}",
        "fn f() -> ! { #[cfg(windows)] let a = 1 + 2; loop {} }",
        "fn f() -> ! { #[cfg(test)] if a < b {} loop {} }",
        "fn f() -> ! { if let Some(a) = b && c {} loop {} }",
        "macro_rules! m { () => { fn f() -> usize { 1 + 2 } } }",
    ] {
        let names = names(source);
        let expected: &[&str] = match source {
            "fn f() -> bool { true }" => &["replace f -> bool with false"],
            _ => &[],
        };
        assert_eq!(names, expected, "{source}");
    }
}

#[test]
fn a_name_that_stands_in_a_line_twice_has_a_number() {
    let source = "fn f() -> ! {\n    g(a + b, c + d);\n}";
    let found = sites(source).unwrap();
    let keys = keys(source, &found);
    assert_eq!(
        keys.concat(),
        [
            "replace + with - in f @ g(a + b, c + d);",
            "replace + with * in f @ g(a + b, c + d);",
            "replace + with - in f @ g(a + b, c + d); #2",
            "replace + with * in f @ g(a + b, c + d); #2",
        ]
    );
}

#[test]
fn each_mutant_has_its_code() {
    assert_eq!(
        text("fn f() -> u8 { g(a - b) }"),
        "fn f() -> u8 { if is(1) { return 0; } if is(2) { return 1; } \
         g((match ((a ), ( b)) { (l, r) => if is(3) { l + r } else if is(4) { l / r } else { l - r } })) }"
    );
    assert_eq!(
        text("fn f() -> ! { g(a == b) }"),
        "fn f() -> ! { g((match (&(a ), &( b)) { (l, r) => if is(1) { *l != *r } else { *l == *r } })) }"
    );
    assert_eq!(
        text("fn f() -> ! { g(a && b) }"),
        "fn f() -> ! { g((if (a ) != is(1) { b} else { is(1) })) }"
    );
    assert_eq!(
        text("fn f() -> ! { g(a || b) }"),
        "fn f() -> ! { g((if (a ) == is(1) { b} else { !is(1) })) }"
    );
    assert_eq!(
        text("fn f() -> ! { x.y += 1; }"),
        "fn f() -> ! { (match (1) { r => if is(1) { x.y -= r } else if is(2) { x.y *= r } else { x.y += r } }); }"
    );
    assert_eq!(
        text("fn f() -> ! { g(!a) }"),
        "fn f() -> ! { g((match (a) { l => if is(1) { l } else { !l } })) }"
    );
    assert_eq!(
        text("fn f() -> ! { match x { 1 => y, 2 if a => z, _ => w } }"),
        "fn f() -> ! { match x { 1 if !is(1) => y, \
         2 if (!is(2) && ((is(3) || !is(4) && (a)))) => z, _ => w } }"
    );
}

#[test]
fn sites_lie_within_others() {
    assert_eq!(
        text("fn f() -> ! { g(!a && b) }"),
        "fn f() -> ! { g((if ((match (a) { l => if is(2) { l } else { !l } }) ) != is(1) { b} else { is(1) })) }"
    );
    let product = "(match ((a), (b)) { (l, r) => if is(3) { l + r } else if is(4) { l / r } else { l * r } })";
    assert_eq!(
        text("fn f() -> ! { g(a*b+c) }"),
        format!(
            "fn f() -> ! {{ g((match (({product}), (c)) {{ (l, r) => \
             if is(1) {{ l - r }} else if is(2) {{ l * r }} else {{ l + r }} }})) }}"
        )
    );
}

#[test]
fn a_line_keeps_its_number() {
    let source =
        "fn f() -> ! {\n    x\n        += a\n        - 1; // é\n    g(b\n        && c)\n}\n";
    let text = text(source);
    let line = |text: &str, part: &str| text.lines().position(|line| line.contains(part)).unwrap();
    assert_eq!(text.lines().count(), source.lines().count());
    assert_eq!(line(&text, "// é"), 3);
    assert_eq!(line(&text, "g("), 4);
}

#[test]
fn an_error_of_the_compiler_takes_mutants_out() {
    let source = "fn f() -> u8 { g(a + b) }";
    let all = rendered(source, &[]);
    let place = |part: &str| {
        let start = all.text.find(part).unwrap();
        start..start + part.len()
    };
    // In the code of one mutant.
    assert_eq!(all.at(&place("l - r")), [3]);
    assert_eq!(all.at(&place("return 1;")), [2]);
    // At a site.
    assert_eq!(all.at(&place("else { l + r }")), [3, 4]);
    // Elsewhere in a function.
    assert_eq!(all.at(&place("g(")), [1, 2, 3, 4]);
    // Outside.
    assert!(all.at(&(0..all.text.len())).len() <= 4);
    assert_eq!(rendered(source, &[3]).text.matches("l - r").count(), 0);
    assert_eq!(rendered(source, &[1, 2, 3, 4]).text, source);
}
