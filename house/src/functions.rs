//! The functions of a file, with their lengths.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, File, ImplItemFn, Item, ItemFn, ItemImpl, ItemMod, ItemTrait, Macro};
use syn::{Signature, TraitItemFn, Type};

use crate::conditions::Conditions;
use crate::modules::join;

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, after those of the modules, the type and the functions that it is in.
    pub name: String,
    /// The lines from its signature to its closing brace.
    pub lines: usize,
    /// It has `#[test]`.
    pub is_test: bool,
    /// It exists in tests only.
    pub is_in_tests: bool,
}

/// Returns all functions of a file, the tests in `proptest!` included.
#[must_use]
pub fn functions(file: &File) -> Vec<Function> {
    let mut collector = Collector {
        scope: Vec::new(),
        is_in_tests: Conditions::default().and(&file.attrs).needs_test(),
        functions: Vec::new(),
    };
    collector.visit_file(file);
    collector.functions
}

/// Returns the lines of the file's own items under `#[cfg(test)]`.
#[must_use]
pub fn lines_in_tests(file: &File) -> usize {
    let needs_test = |item: &&Item| {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return false,
        };
        Conditions::default().and(attributes).needs_test()
    };
    let items = file.items.iter().filter(needs_test);
    items.map(|item| lines(item.span(), item.span())).sum()
}

fn lines(first: Span, last: Span) -> usize {
    (last.end().line + 1).saturating_sub(first.start().line)
}

struct Collector {
    scope: Vec<String>,
    is_in_tests: bool,
    functions: Vec<Function>,
}

impl Collector {
    /// Visits inside of a named scope with these attributes.
    fn within(&mut self, name: String, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        let before = self.is_in_tests;
        self.is_in_tests |= Conditions::default().and(attributes).needs_test();
        self.scope.push(name);
        visit(self);
        self.scope.pop();
        self.is_in_tests = before;
    }

    fn add(&mut self, name: &str, lines: usize, is_test: bool) {
        self.functions.push(Function {
            name: join(&self.scope.join("::"), name),
            lines,
            is_test,
            is_in_tests: self.is_in_tests || is_test,
        });
    }

    fn function(
        &mut self,
        attributes: &[Attribute],
        signature: &Signature,
        body: &Block,
        visit: impl FnOnce(&mut Self),
    ) {
        let name = signature.ident.to_string();
        let lines = lines(signature.span(), body.span());
        let is_test = attributes.iter().any(|a| a.path().is_ident("test"));
        let before = self.is_in_tests;
        self.is_in_tests |= is_test || Conditions::default().and(attributes).needs_test();
        self.add(&name, lines, is_test);
        self.within(name, &[], visit);
        self.is_in_tests = before;
    }

    /// Adds the tests in `proptest!`, whose arguments are no Rust.
    fn property_tests(&mut self, tokens: TokenStream) {
        let mut start: Option<(String, Span)> = None;
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "fn" => {
                    let name = tokens.peek().map(ToString::to_string);
                    start = name.map(|name| (name, word.span()));
                }
                TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Brace => {
                    if let Some((name, first)) = start.take() {
                        self.add(&name, lines(first, group.span()), true);
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'a> Visit<'a> for Collector {
    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        let name = item.ident.to_string();
        self.within(name, &item.attrs, |inner| {
            visit::visit_item_mod(inner, item)
        });
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        let name = name_of(&item.self_ty);
        self.within(name, &item.attrs, |inner| {
            visit::visit_item_impl(inner, item)
        });
    }

    fn visit_item_trait(&mut self, item: &'a ItemTrait) {
        let name = item.ident.to_string();
        self.within(name, &item.attrs, |inner| {
            visit::visit_item_trait(inner, item)
        });
    }

    fn visit_item_fn(&mut self, item: &'a ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block, |inner| {
            visit::visit_item_fn(inner, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'a ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block, |inner| {
            visit::visit_impl_item_fn(inner, item);
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'a TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.attrs, &item.sig, body, |inner| {
                visit::visit_trait_item_fn(inner, item);
            });
        }
    }

    fn visit_macro(&mut self, item: &'a Macro) {
        if item.path.is_ident("proptest") {
            self.property_tests(item.tokens.clone());
        }
    }
}

/// Returns the last name of a type's path.
fn name_of(ty: &Type) -> String {
    match ty {
        Type::Path(ty) => ty.path.segments.last().map(|s| s.ident.to_string()),
        Type::Reference(ty) => Some(name_of(&ty.elem)),
        _ => None,
    }
    .unwrap_or_else(|| "_".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, usize, bool)> {
        let file = syn::parse_file(text).unwrap();
        let functions = functions(&file).into_iter();
        functions
            .map(|f| (f.name, f.lines, f.is_in_tests))
            .collect()
    }

    #[test]
    fn a_method_counts_from_its_signature() {
        let text = "impl T {\n    /// Docs.\n    #[inline]\n    fn f(\n    ) {\n    }\n}\n";
        assert_eq!(of(text), [("T::f".to_owned(), 3, false)]);
    }

    #[test]
    fn tests_are_told_apart() {
        let text = "#[cfg(test)]\nmod tests {\n    fn helper() {}\n}\nfn f() {\n}\n";
        let expected = [
            ("tests::helper".to_owned(), 1, true),
            ("f".to_owned(), 2, false),
        ];
        assert_eq!(of(text), expected);
    }

    #[test]
    fn a_property_test_counts() {
        let text = "proptest! {\n    #[test]\n    fn f(a in 0..3) {\n        a;\n    }\n}\n";
        assert_eq!(of(text), [("f".to_owned(), 3, true)]);
    }

    #[test]
    fn a_files_own_tests_are_not_its_length() {
        let text = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(lines_in_tests(&syn::parse_file(text).unwrap()), 3);
    }
}
