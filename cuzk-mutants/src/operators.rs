//! The operators that take the place of others.

use syn::BinOp;

/// How the two operands of an operator are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// By reference, as a comparison does.
    Compared,
    /// The second operand only if the first one asks for it.
    Lazy,
    /// By value.
    Taken,
    /// The first operand is changed in place.
    Assigned,
}

/// Returns an operator's text, the use of its operands, and what takes its place.
#[must_use]
pub fn instead_of(operator: &BinOp) -> Option<(&'static str, Use, &'static [&'static str])> {
    use Use::{Assigned, Compared, Lazy, Taken};
    Some(match operator {
        BinOp::Eq(_) => ("==", Compared, &["!="]),
        BinOp::Ne(_) => ("!=", Compared, &["=="]),
        BinOp::Lt(_) => ("<", Compared, &["==", ">", "<="]),
        BinOp::Gt(_) => (">", Compared, &["==", "<", ">="]),
        BinOp::Le(_) => ("<=", Compared, &[">", "<"]),
        BinOp::Ge(_) => (">=", Compared, &["<", ">"]),
        BinOp::And(_) => ("&&", Lazy, &["||"]),
        BinOp::Or(_) => ("||", Lazy, &["&&"]),
        BinOp::Add(_) => ("+", Taken, &["-", "*"]),
        BinOp::Sub(_) => ("-", Taken, &["+", "/"]),
        BinOp::Mul(_) => ("*", Taken, &["+", "/"]),
        BinOp::Div(_) => ("/", Taken, &["%", "*"]),
        BinOp::Rem(_) => ("%", Taken, &["/", "+"]),
        BinOp::BitAnd(_) => ("&", Taken, &["|", "^"]),
        BinOp::BitOr(_) => ("|", Taken, &["&", "^"]),
        BinOp::BitXor(_) => ("^", Taken, &["|", "&"]),
        BinOp::Shl(_) => ("<<", Taken, &[">>"]),
        BinOp::Shr(_) => (">>", Taken, &["<<"]),
        BinOp::AddAssign(_) => ("+=", Assigned, &["-=", "*="]),
        BinOp::SubAssign(_) => ("-=", Assigned, &["+=", "/="]),
        BinOp::MulAssign(_) => ("*=", Assigned, &["+=", "/="]),
        BinOp::DivAssign(_) => ("/=", Assigned, &["%=", "*="]),
        BinOp::RemAssign(_) => ("%=", Assigned, &["/=", "+="]),
        BinOp::BitAndAssign(_) => ("&=", Assigned, &["|=", "^="]),
        BinOp::BitOrAssign(_) => ("|=", Assigned, &["&=", "^="]),
        BinOp::BitXorAssign(_) => ("^=", Assigned, &["|=", "&="]),
        BinOp::ShlAssign(_) => ("<<=", Assigned, &[">>="]),
        BinOp::ShrAssign(_) => (">>=", Assigned, &["<<="]),
        _ => return None,
    })
}
