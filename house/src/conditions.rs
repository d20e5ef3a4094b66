//! The `#[cfg]`s under which an item exists.

use std::collections::BTreeSet;
use std::fmt::{self, Display};

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// The conditions of an item and of all that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    predicates: BTreeSet<String>,
    needs_test: bool,
}

impl Conditions {
    /// Returns these conditions and those in `attributes`.
    #[must_use]
    pub fn and(&self, attributes: &[Attribute]) -> Self {
        let mut all = self.clone();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("cfg")) {
            let Ok(predicate) = attribute.parse_args::<Meta>() else {
                continue;
            };
            all.needs_test |= needs_test(&predicate);
            all.predicates.insert(one_line(&predicate));
        }
        all
    }

    /// Returns the conditions of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self {
            predicates: &self.predicates | &other.predicates,
            needs_test: self.needs_test || other.needs_test,
        }
    }

    /// Returns true if the item exists in tests only.
    #[must_use]
    pub fn needs_test(&self) -> bool {
        self.needs_test
    }
}

/// Writes `#[cfg(…)] ` for each predicate.
impl Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for predicate in &self.predicates {
            write!(f, "#[cfg({predicate})] ")?;
        }
        Ok(())
    }
}

/// Returns true if the predicate is false outside of tests.
fn needs_test(predicate: &Meta) -> bool {
    let Meta::List(list) = predicate else {
        return predicate.path().is_ident("test");
    };
    let Ok(parts) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else {
        return false;
    };
    if list.path.is_ident("all") {
        parts.iter().any(needs_test)
    } else {
        list.path.is_ident("any") && !parts.is_empty() && parts.iter().all(needs_test)
    }
}

fn one_line(predicate: &Meta) -> String {
    let text = predicate.to_token_stream().to_string();
    text.replace(" (", "(").replace(" ,", ",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(attribute: Attribute) -> Conditions {
        Conditions::default().and(&[attribute])
    }

    #[test]
    fn a_predicate_needs_a_test_or_not() {
        assert!(of(syn::parse_quote!(#[cfg(test)])).needs_test());
        assert!(of(syn::parse_quote!(#[cfg(all(test, not(loom)))])).needs_test());
        assert!(!of(syn::parse_quote!(#[cfg(any(test, unix))])).needs_test());
        assert!(!of(syn::parse_quote!(#[cfg(not(test))])).needs_test());
    }

    #[test]
    fn a_mark_reads_like_the_source() {
        let both = of(syn::parse_quote!(#[cfg(all(unix, not(feature = "x")))]));
        assert_eq!(
            both.to_string(),
            r#"#[cfg(all(unix, not(feature = "x")))] "#
        );
    }
}
