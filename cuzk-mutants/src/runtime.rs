//! How a program with mutants knows the chosen one.
//!
//! [`text`] is the source of a module that a mutated crate gets. A program asks it before each place
//! that has mutants. It reads the environment once. Invariant: a child process takes part, since it has
//! the environment of its parent, and a program that aborts has told what it reached.

/// The variable that chooses a mutant.
pub const CHOSEN: &str = "CUZK_MUTANT";

/// The variable that names a file. A program without a chosen mutant adds a line with the number of
/// each mutant that it reaches.
pub const REACHED: &str = "CUZK_MUTANTS_REACHED";

const SOURCE: &str = r#"
#[doc(hidden)]
pub mod __mutants {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

    const UNREAD: u32 = u32::MAX;
    const RECORDED: u32 = u32::MAX - 1;

    static CHOSEN: AtomicU32 = AtomicU32::new(UNREAD);
    static REACHED: [AtomicBool; @COUNT@] = [const { AtomicBool::new(false) }; @COUNT@];

    #[inline]
    pub fn is(number: u32) -> bool {
        let chosen = CHOSEN.load(Relaxed);
        if chosen < RECORDED { chosen == number } else { look(number) }
    }

    #[cold]
    fn look(number: u32) -> bool {
        if CHOSEN.load(Relaxed) == UNREAD {
            let chosen = std::env::var("@CHOSEN@").ok().and_then(|text| text.parse().ok());
            let is_recorded = std::env::var_os("@REACHED@").is_some();
            let otherwise = if is_recorded { RECORDED } else { 0 };
            CHOSEN.store(chosen.unwrap_or(otherwise), Relaxed);
        }
        if CHOSEN.load(Relaxed) == RECORDED && !REACHED[number as usize].swap(true, Relaxed) {
            let path = std::env::var_os("@REACHED@").unwrap_or_default();
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            _ = file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
        }
        CHOSEN.load(Relaxed) == number
    }
}
"#;

/// Returns the module for mutants with numbers from 1 to `most`.
#[must_use]
pub fn text(most: u32) -> String {
    let count = u64::from(most) + 1;
    SOURCE
        .replace("@COUNT@", &count.to_string())
        .replace("@CHOSEN@", CHOSEN)
        .replace("@REACHED@", REACHED)
}
