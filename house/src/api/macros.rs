//! The lines of macros under `#[macro_export]`.

use proc_macro2::{TokenStream, TokenTree};
use syn::{Item, ItemMacro};

use super::is_hidden;
use crate::conditions::Conditions;
use crate::modules::Crate;

/// Returns a line for each pattern of each exported macro.
pub(super) fn lines(modules: &Crate) -> Vec<String> {
    let mut lines = Vec::new();
    for module in &modules.modules {
        for item in &module.items {
            let Item::Macro(item) = item else { continue };
            let conditions = module.conditions.and(&item.attrs);
            let is_exported = item.attrs.iter().any(|a| a.path().is_ident("macro_export"));
            if is_exported && !conditions.needs_test() && !is_hidden(&item.attrs) {
                lines.extend(of_macro(&modules.name, item, &conditions));
            }
        }
    }
    lines
}

fn of_macro(root: &str, item: &ItemMacro, conditions: &Conditions) -> Vec<String> {
    let Some(name) = &item.ident else {
        return Vec::new();
    };
    let patterns = patterns(item.mac.tokens.clone());
    patterns
        .into_iter()
        .map(|pattern| format!("{root}::{name}: {conditions}macro_rules! {name} {pattern}"))
        .collect()
}

/// Returns the groups before `=>`.
fn patterns(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_pattern = |pair: &&[TokenTree]| match &pair[1] {
        TokenTree::Punct(sign) => sign.as_char() == '=',
        _ => false,
    };
    tokens
        .windows(2)
        .filter(is_pattern)
        .map(|pair| pair[0].to_string().replace("$ ", "$").replace('\n', " "))
        .collect()
}
