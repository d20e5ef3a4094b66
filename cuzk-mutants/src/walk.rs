//! The walk through a source that finds its sites.
//!
//! It stops at code that the compiler evaluates, at unsafe code, and at items that are part of the
//! tests or of another build. It does not read the arguments of macros.

use anyhow::{Context as _, Result};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    AngleBracketedGenericArguments, Arm, Attribute, Block, Expr, ExprBinary, ExprConst, ExprMatch,
    ExprRepeat, ExprUnary, ExprUnsafe, ImplItemConst, ImplItemFn, Item, ItemFn, ItemImpl, ItemMod,
    ItemTrait, Local, Pat, Path, Signature, TraitItemConst, TraitItemFn, Type, UnOp,
};

use crate::conditions::is_built;
use crate::operators::{Use, instead_of};
use crate::sites::{Bytes, Shape, Site};
use crate::values::{keeps_body, of_return};

/// Returns the sites of a source, in the order of the walk.
///
/// # Errors
/// The source does not parse.
pub fn sites(text: &str) -> Result<Vec<Site>> {
    let file = syn::parse_file(text).context("the source does not parse")?;
    let mut walk = Walk {
        text,
        scope: Vec::new(),
        of_trait: None,
        function: None,
        sites: Vec::new(),
    };
    walk.visit_file(&file);
    Ok(walk.sites)
}

struct Walk<'t> {
    text: &'t str,
    /// The names of the modules, types and functions around.
    scope: Vec<String>,
    /// The trait of the `impl` around.
    of_trait: Option<String>,
    /// The function around.
    function: Option<Bytes>,
    sites: Vec<Site>,
}

impl Walk<'_> {
    fn slice(&self, bytes: Bytes) -> &str {
        self.text.get(bytes).unwrap_or_default()
    }

    /// Returns the source's own text of something, in one line.
    fn said(&self, what: &impl Spanned) -> String {
        let text = self.slice(what.span().byte_range());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn within(&mut self, name: String, walk: impl FnOnce(&mut Self)) {
        self.scope.push(name);
        walk(self);
        self.scope.pop();
    }

    fn add(
        &mut self,
        shape: Shape,
        named: &impl Spanned,
        whole: &impl Spanned,
        changes: Vec<(String, String)>,
    ) {
        let Some(function) = self.function.clone() else {
            return;
        };
        if changes.is_empty() {
            return;
        }
        let whole = whole.span();
        self.sites.push(Site {
            shape,
            function,
            line: named.span().start().line,
            lines: whole.start().line..=whole.end().line,
            changes,
        });
    }

    fn function(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        let is_const = signature.constness.is_some() || signature.unsafety.is_some();
        if is_const || !is_built(attributes) {
            return;
        }
        let before = self.function.take();
        let start = signature.span().byte_range().start;
        self.function = Some(start..block.span().byte_range().end);
        self.within(signature.ident.to_string(), |walk| {
            walk.body(signature, block);
            visit::visit_block(walk, block);
        });
        self.function = before;
    }

    fn body(&mut self, signature: &Signature, block: &Block) {
        let bytes = block.span().byte_range();
        let inner = self
            .slice(bytes.start + 1..bytes.end.saturating_sub(1))
            .trim()
            .to_owned();
        let name = signature.ident.to_string();
        if block.stmts.is_empty() || keeps_body(&name, self.of_trait.as_deref()) {
            return;
        }
        let context = self.scope.join("::");
        let output = match &signature.output {
            syn::ReturnType::Default => String::new(),
            syn::ReturnType::Type(_, of) => format!(" -> {}", self.said(of)),
        };
        let values = of_return(&signature.output)
            .into_iter()
            .filter(|value| *value != inner);
        let change = |value| (format!("replace {context}{output} with {value}"), value);
        let changes = values.map(change).collect();
        self.add(
            Shape::Body(bytes.start + 1),
            &signature.ident,
            block,
            changes,
        );
    }

    fn arm(&mut self, arm: &Arm, may_go: bool) {
        let context = self.scope.join("::");
        let guard = arm
            .guard
            .as_ref()
            .map(|(_, guard)| &**guard)
            .filter(|guard| !has_let(guard));
        if may_go && guard.is_some() == arm.guard.is_some() {
            let name = format!("delete match arm {} in {context}", self.said(&arm.pat));
            let end = arm.pat.span().byte_range().end;
            let place = guard.map(|guard| guard.span().byte_range()).ok_or(end);
            self.add(
                Shape::Arm(place),
                &arm.pat,
                &arm.pat,
                vec![(name, String::new())],
            );
        }
        if let Some(guard) = guard {
            let change = |to: &str| {
                let name = format!("replace match guard with {to} in {context}");
                (name, to.to_owned())
            };
            let changes = vec![change("true"), change("false")];
            self.add(
                Shape::Guard(guard.span().byte_range()),
                guard,
                guard,
                changes,
            );
        }
        if let Some((_, guard)) = &arm.guard {
            self.visit_expr(guard);
        }
        self.visit_expr(&arm.body);
    }
}

/// Returns true for a condition with a pattern, at its beginning or behind `&&`.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Returns the last name of a path.
fn last(path: &Path) -> String {
    path.segments
        .last()
        .map(|last| last.ident.to_string())
        .unwrap_or_default()
}

impl<'a> Visit<'a> for Walk<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        // Other items have no code that runs.
        if matches!(
            item,
            Item::Fn(_) | Item::Impl(_) | Item::Mod(_) | Item::Trait(_)
        ) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if is_built(&item.attrs) {
            self.within(item.ident.to_string(), |walk| {
                visit::visit_item_mod(walk, item)
            });
        }
    }

    fn visit_item_trait(&mut self, item: &'a ItemTrait) {
        if is_built(&item.attrs) {
            self.within(item.ident.to_string(), |walk| {
                visit::visit_item_trait(walk, item)
            });
        }
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        if !is_built(&item.attrs) {
            return;
        }
        let of = self.said(&item.self_ty);
        let of_trait = item.trait_.as_ref().map(|(_, path, _)| path);
        let name = match of_trait {
            Some(path) => format!("<impl {} for {of}>", self.said(path)),
            None => of,
        };
        let before = std::mem::replace(&mut self.of_trait, of_trait.map(last));
        self.within(name, |walk| visit::visit_item_impl(walk, item));
        self.of_trait = before;
    }

    fn visit_impl_item_fn(&mut self, item: &'a ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'a TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, block);
        }
    }

    fn visit_local(&mut self, local: &'a Local) {
        if is_built(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        let attributes = match expr {
            Expr::Block(expr) => &expr.attrs,
            Expr::Call(expr) => &expr.attrs,
            Expr::If(expr) => &expr.attrs,
            Expr::Match(expr) => &expr.attrs,
            Expr::MethodCall(expr) => &expr.attrs,
            Expr::Return(expr) => &expr.attrs,
            _ => return visit::visit_expr(self, expr),
        };
        if is_built(attributes) {
            visit::visit_expr(self, expr);
        }
    }

    fn visit_expr_match(&mut self, whole: &'a ExprMatch) {
        self.visit_expr(&whole.expr);
        let is_rest = |arm: &Arm| arm.guard.is_none() && matches!(arm.pat, Pat::Wild(_));
        let has_rest = whole.arms.iter().any(is_rest);
        for arm in whole.arms.iter().filter(|arm| is_built(&arm.attrs)) {
            self.arm(arm, has_rest && !is_rest(arm));
        }
    }

    fn visit_expr_binary(&mut self, binary: &'a ExprBinary) {
        let is_chain = has_let(&binary.left) || has_let(&binary.right);
        let Some((text, of, others)) = instead_of(&binary.op).filter(|_| !is_chain) else {
            return visit::visit_expr_binary(self, binary);
        };
        let context = self.scope.join("::");
        let change = |other: &&str| {
            let name = format!("replace {text} with {other} in {context}");
            (name, (*other).to_owned())
        };
        let shape = Shape::Operator {
            of,
            left: binary.left.span().byte_range(),
            token: binary.op.span().byte_range(),
            right: binary.right.span().byte_range(),
        };
        let changes = others.iter().map(change).collect();
        self.add(shape, &binary.op, &binary.op, changes);
        // The place that is changed stands in the text twice, and has no mutants.
        if of != Use::Assigned {
            self.visit_expr(&binary.left);
        }
        self.visit_expr(&binary.right);
    }

    fn visit_expr_unary(&mut self, unary: &'a ExprUnary) {
        let text = match unary.op {
            UnOp::Not(_) => "!",
            UnOp::Neg(_) => "-",
            _ => "",
        };
        if !text.is_empty() {
            let name = format!("delete {text} in {}", self.scope.join("::"));
            let shape = Shape::Unary {
                token: unary.op.span().byte_range(),
                end: unary.expr.span().byte_range().end,
            };
            self.add(shape, &unary.op, &unary.op, vec![(name, String::new())]);
        }
        self.visit_expr(&unary.expr);
    }

    fn visit_expr_repeat(&mut self, repeat: &'a ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr_const(&mut self, _: &'a ExprConst) {}

    fn visit_expr_unsafe(&mut self, _: &'a ExprUnsafe) {}

    fn visit_impl_item_const(&mut self, _: &'a ImplItemConst) {}

    fn visit_trait_item_const(&mut self, _: &'a TraitItemConst) {}

    fn visit_angle_bracketed_generic_arguments(&mut self, _: &'a AngleBracketedGenericArguments) {}

    fn visit_type(&mut self, _: &'a Type) {}

    fn visit_pat(&mut self, _: &'a Pat) {}

    fn visit_attribute(&mut self, _: &'a Attribute) {}
}
