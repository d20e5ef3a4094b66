//! Impls that a macro of the module writes. The macro is not expanded: the line has its
//! call and the head of the impl in its body.

use proc_macro2::{TokenStream, TokenTree};
use syn::{Item, ItemMacro};

use super::{Public, Standing};
use crate::conditions::Conditions;
use crate::modules::{Module, ModuleId};

/// Returns a line for each call that writes an impl of an exported trait.
pub(super) fn lines(id: ModuleId, module: &Module, public: &Public<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for call in macros(module).filter(|item| item.ident.is_none()) {
        let Some(definition) = macros(module)
            .find(|item| item.ident.is_some() && item.ident.as_ref() == call.mac.path.get_ident())
        else {
            continue;
        };
        for (name, head) in heads(definition.mac.tokens.clone()) {
            let Ok(path) = syn::parse_str(&name) else {
                continue;
            };
            if let Standing::Exported(place) = public.of_path(id, &path) {
                let conditions = module.conditions.and(&call.attrs).union(&place.conditions);
                lines.push(line(&place.path, &conditions, call, &head));
            }
        }
    }
    lines
}

fn macros(module: &Module) -> impl Iterator<Item = &ItemMacro> {
    module.items.iter().filter_map(|item| match item {
        Item::Macro(item) => Some(item),
        _ => None,
    })
}

fn line(path: &str, conditions: &Conditions, call: &ItemMacro, head: &str) -> String {
    let name = call.mac.path.get_ident().map(ToString::to_string);
    let arguments = call.mac.tokens.to_string().replace(" ,", ",");
    let arguments = arguments.trim_end_matches(',').replace('\n', " ");
    format!(
        "{path}: {conditions}{head}, by {}!({arguments})",
        name.unwrap_or_default()
    )
}

/// Returns the trait's name and the head of each `impl Trait for …` in a macro's body.
fn heads(tokens: TokenStream) -> Vec<(String, String)> {
    let mut heads = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => heads.extend(self::heads(group.stream())),
            TokenTree::Ident(word) if word == "impl" => {
                let mut head = Vec::new();
                while let Some(token) = tokens.next_if(|t| !matches!(t, TokenTree::Group(_))) {
                    head.push(token.to_string());
                }
                let name = head.iter().position(|word| word == "for");
                if let Some(name) = name.and_then(|at| at.checked_sub(1)) {
                    let text = head.join(" ").replace("$ ", "$");
                    heads.push((head[name].clone(), format!("impl {text}")));
                }
            }
            _ => {}
        }
    }
    heads
}
