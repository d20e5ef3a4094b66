//! Signatures on one line, without bodies and values.

use syn::{Expr, FnArg, Item, Pat, Signature, Type, Visibility};

/// Returns an item as prettyplease formats it, on one line.
pub(super) fn one_line(item: Item) -> String {
    let file = syn::File {
        shebang: None,
        attrs: Vec::new(),
        items: vec![item],
    };
    joined(&prettyplease::unparse(&file))
}

/// Joins lines. Removes the commas and spaces that only a broken line has.
fn joined(text: &str) -> String {
    let mut line = String::new();
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if part.starts_with([')', ']', '>']) {
            if line.ends_with(',') {
                line.pop();
            }
        } else if !line.is_empty() && !line.ends_with(['(', '[', '<']) {
            line.push(' ');
        }
        line.push_str(part);
    }
    line
}

/// Returns a function's signature.
pub(super) fn function(visibility: &Visibility, signature: &Signature) -> String {
    let mut sig = signature.clone();
    for input in &mut sig.inputs {
        match input {
            FnArg::Receiver(receiver) => receiver.attrs.clear(),
            FnArg::Typed(argument) => {
                argument.attrs.clear();
                plain(&mut argument.pat);
            }
        }
    }
    let line = one_line(Item::Fn(syn::ItemFn {
        attrs: Vec::new(),
        vis: visibility.clone(),
        sig,
        block: Box::new(syn::Block {
            brace_token: syn::token::Brace::default(),
            stmts: Vec::new(),
        }),
    }));
    without_end(&line, " {}")
}

/// Replaces a pattern by its name, or by `_`: callers do not see more.
fn plain(pattern: &mut Pat) {
    if let Pat::Ident(name) = pattern {
        name.attrs.clear();
        name.by_ref = None;
        name.mutability = None;
        name.subpat = None;
    } else {
        *pattern = Pat::Wild(syn::PatWild {
            attrs: Vec::new(),
            underscore_token: syn::token::Underscore::default(),
        });
    }
}

/// Returns a constant's signature, without its value.
pub(super) fn constant(item: &syn::ItemConst) -> String {
    let mut item = item.clone();
    item.attrs.clear();
    item.expr = Box::new(no_value());
    without_end(&one_line(Item::Const(item)), " = _;")
}

/// Returns a type. prettyplease formats items only, so that an alias carries it.
pub(super) fn type_text(ty: &Type) -> String {
    let alias = one_line(syn::parse_quote!(type T = #ty;));
    let text = alias.strip_prefix("type T = ").unwrap_or(&alias);
    without_end(text, ";")
}

/// Returns an expression that stands for a value.
pub(super) fn no_value() -> Expr {
    Expr::Infer(syn::ExprInfer {
        attrs: Vec::new(),
        underscore_token: syn::token::Underscore::default(),
    })
}

/// Returns the text without `end`, where it has it. A comma before it goes, too: a
/// `where` leaves one.
pub(super) fn without_end(text: &str, end: &str) -> String {
    let text = text.strip_suffix(end).unwrap_or(text);
    text.strip_suffix(',').unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_signature_is_on_one_line() {
        let item: syn::ItemFn = syn::parse_quote! {
            #[inline]
            pub fn a_function_with_a_name<'a, T>(
                mut one: &'a mut [T], (two, three): (usize, usize), four: Option<Box<dyn Fn(T)>>
            ) -> Result<Vec<T>, Error> where T: Copy + Send {
                one[two]
            }
        };
        assert_eq!(
            function(&item.vis, &item.sig),
            "pub fn a_function_with_a_name<'a, T>(one: &'a mut [T], _: (usize, usize), \
             four: Option<Box<dyn Fn(T)>>) -> Result<Vec<T>, Error> where T: Copy + Send"
        );
    }
}
