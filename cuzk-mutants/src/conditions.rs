//! The `#[cfg]`s under which a build with tests has an item, on this machine.
//!
//! Features count as off. The mutants of code that a feature adds are not tried.

use std::env::consts::{ARCH, OS};

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Token};

/// Returns true if the item with these attributes is built, and is no part of the tests.
#[must_use]
pub fn is_built(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| attribute.path().is_ident("test");
    let cfgs = attributes.iter().filter(|a| a.path().is_ident("cfg"));
    let mut predicates = cfgs.filter_map(|attribute| attribute.parse_args::<Meta>().ok());
    !attributes.iter().any(is_test) && predicates.all(|predicate| holds(&predicate))
}

fn holds(predicate: &Meta) -> bool {
    match predicate {
        Meta::Path(path) => path.is_ident("unix"),
        Meta::NameValue(pair) => {
            let Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) = &pair.value
            else {
                return false;
            };
            let of = |name: &str, value: &str| pair.path.is_ident(name) && text.value() == value;
            of("target_os", OS) || of("target_arch", ARCH) || of("target_pointer_width", "64")
        }
        Meta::List(list) => {
            let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
            let Ok(parts) = list.parse_args_with(parse) else {
                return false;
            };
            if list.path.is_ident("not") {
                !parts.iter().any(holds)
            } else if list.path.is_ident("any") {
                parts.iter().any(holds)
            } else {
                parts.iter().all(holds)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_and_another_build_are_left_out() {
        let built = |attribute: Attribute| is_built(&[attribute]);
        assert!(built(syn::parse_quote!(#[must_use])));
        assert!(built(syn::parse_quote!(#[cfg(not(loom))])));
        assert!(built(syn::parse_quote!(#[cfg(any(test, unix))])));
        assert!(!built(syn::parse_quote!(#[test])));
        assert!(!built(syn::parse_quote!(#[cfg(all(test, not(loom)))])));
        assert!(!built(syn::parse_quote!(#[cfg(feature = "cuda")])));
        assert!(!built(syn::parse_quote!(#[cfg(not(unix))])));
    }
}
