//! The four kinds of proof: what each proves, and what verifies it.
