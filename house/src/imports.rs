//! The paths that a module's sources name, tests apart.

use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemMod, ItemUse, Macro};

use crate::conditions::Conditions;
use crate::names::Import;

/// A path, segment by segment, as it is written.
pub type Path = Vec<String>;

/// The imports and paths of one module.
#[derive(Clone, Debug, Default)]
pub struct Imports {
    /// Each `use`: the name that it brings into the module, and the path that it is for.
    /// A glob brings `*`.
    pub imports: Vec<(String, Path)>,
    /// Paths elsewhere that have several segments.
    pub paths: Vec<Path>,
}

impl Imports {
    /// Returns the imports and paths in a module's items, and in the functions and macros
    /// there. Modules in it are not visited: they have their own.
    #[must_use]
    pub fn of(items: &[Item]) -> Self {
        let mut imports = Self::default();
        for item in items {
            imports.visit_item(item);
        }
        imports
    }

    /// Adds the paths in the arguments of a macro, which need not be Rust.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path = Path::new();
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Ident(name) if colons == 2 && !path.is_empty() => {
                    path.push(name.to_string());
                }
                TokenTree::Ident(name) => {
                    self.add_path(std::mem::take(&mut path));
                    path.push(name.to_string());
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => {
                    colons = if colons == 1 { 2 } else { 1 };
                    let is_single = colons == 1 && sign.spacing() == Spacing::Alone;
                    if is_single || path.is_empty() {
                        self.add_path(std::mem::take(&mut path));
                    }
                    continue;
                }
                other => {
                    self.add_path(std::mem::take(&mut path));
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
            colons = 0;
        }
        self.add_path(path);
    }

    fn add_path(&mut self, path: Path) {
        if path.len() > 1 {
            self.paths.push(path);
        }
    }
}

impl<'a> Visit<'a> for Imports {
    fn visit_item(&mut self, item: &'a Item) {
        if !Conditions::default().and(attributes(item)).needs_test() {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, _: &'a ItemMod) {}

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        for import in Import::all(item) {
            let name = import.name.unwrap_or_else(|| "*".to_owned());
            self.imports.push((name, import.path));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a ImplItemFn) {
        if !Conditions::default().and(&item.attrs).needs_test() {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let segments = path.segments.iter();
        self.add_path(segments.map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'a Macro) {
        self.visit_path(&item.path);
        self.add_tokens(item.tokens.clone());
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Vec<String>, Vec<String>) {
        let found = Imports::of(&syn::parse_file(text).unwrap().items);
        let imports = found.imports.iter();
        let imports = imports.map(|(name, path)| format!("{name} = {}", path.join("::")));
        let paths = found.paths.iter().map(|path| path.join("::"));
        (imports.collect(), paths.collect())
    }

    #[test]
    fn a_tree_of_imports_is_taken_apart() {
        let (imports, _) = of("use crate::a::{self, b::C as D, e::*}; use ::other::F;");
        let expected = [
            "a = crate::a",
            "D = crate::a::b::C",
            "* = crate::a::e",
            "F = other::F",
        ];
        assert_eq!(imports, expected);
    }

    #[test]
    fn paths_are_found_in_code_and_in_macros() {
        let (_, paths) = of("fn f(a: b::C) { d::e(); g!(h: i::J, { k::l::<m::N>() }); }");
        assert_eq!(paths, ["b::C", "d::e", "i::J", "k::l", "m::N"]);
    }

    #[test]
    fn tests_comments_and_texts_are_left_out() {
        let text = "/// [`a::B`]\nfn f() -> &str { \"a::B\" }\n#[cfg(test)]\nuse a::B;\nmod c {\nuse a::B;\n}";
        assert_eq!(of(text), (vec![], vec![]));
    }
}
