//! The methods of a constraint system that keeps no names.
//!
//! Not the system. The invariant: a name is never made, since making one takes longer than
//! the row that has it.

/// Expands to the methods of [`ConstraintSystem`](bellperson::ConstraintSystem) that say
/// where in a circuit a row is. They do nothing, and the root is the system itself.
macro_rules! nameless {
    () => {
        fn push_namespace<NR, N>(&mut self, _: N)
        where
            NR: Into<String>,
            N: FnOnce() -> NR,
        {
        }

        fn pop_namespace(&mut self) {}

        fn get_root(&mut self) -> &mut Self::Root {
            self
        }
    };
}

pub(crate) use nameless;
