//! The public API of a crate, one line an entry.
//!
//! A line begins with the full path, so that the listing sorts by it. An item that is
//! public at two paths has its entry at one, and a `pub use` at the other.

use std::collections::BTreeSet;

use syn::Attribute;

use crate::modules::Crate;
use crate::names::{Names, Target};

mod exports;
mod implementations;
mod items;
mod macros;
mod signature;

use exports::Exports;

/// Returns the sorted listing of a crate's public API.
///
/// Items under `#[cfg(test)]` or `#[doc(hidden)]` are left out. Those under another
/// `#[cfg]` are marked with it.
#[must_use]
pub fn listing(modules: &Crate) -> Vec<String> {
    let names = Names::new(modules);
    let exports = Exports::of(modules, names);
    let mut lines: BTreeSet<String> = exports.aliases.iter().cloned().collect();
    for (target, place) in &exports.places {
        let start = format!("{}: {}", place.path, place.conditions);
        match target {
            Target::Module(_) => {
                lines.insert(format!("{start}pub mod"));
            }
            Target::Item(module, position) => {
                let item = &modules.modules[*module].items[*position];
                lines.extend(items::lines(item, place));
            }
            Target::Outside(_) => {}
        }
    }
    lines.extend(implementations::lines(modules, names, &exports));
    lines.extend(macros::lines(modules));
    lines.into_iter().collect()
}

/// Returns true for `#[doc(hidden)]`.
fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|word| word == "hidden")
    })
}
