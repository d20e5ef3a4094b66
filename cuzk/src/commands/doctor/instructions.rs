//! The instructions of the CPU's kernels: which the engine uses, and what it costs not to have
//! faster ones.
//!
//! Not a measurement: the figures are those of docs/measured.md. The invariant: the line is a
//! warning unless the kernels are the fastest that cuzk has. Proofs on the CPU could then be
//! faster with another configuration or on another processor.

use std::path::Path;

use cuzk_core::Config;
use cuzk_kernels::Isa;

use super::finding::Finding;
use crate::machine::system::processor;

const TOPIC: &str = "instructions";

/// Returns how many times as fast as bellperson cuzk proved a PoRep of 2 KiB with the instructions
/// `isa`, and on which processor. The figures stand in docs/measured.md. Nothing if nobody measured it.
fn times_bellperson(isa: &str) -> Option<(&'static str, &'static str)> {
    match isa {
        "ifma" => Some(("14.0", "Zen 5")),
        "avx2" => Some(("5.18", "Zen 3")),
        "scalar" => Some(("2.81", "Zen 3")),
        _ => None,
    }
}

pub(super) fn examine(config: &Config, root: &Path) -> Finding {
    let processor = processor(root).unwrap_or_else(|| "a processor without a name".to_owned());
    judge(&processor, Isa::best().name(), config.cpu.isa.name())
}

/// Judges the instructions `used` on a processor that has `best` as the fastest ones. Both are
/// names that `[cpu] isa` may have.
fn judge(processor: &str, best: &str, used: &str) -> Finding {
    let text = format!("{processor}: kernels on the CPU use {}", described(used));
    if used != best {
        let advice = format!(
            "the processor has {}, which is faster: write [cpu] isa = \"auto\"{}",
            described(best),
            cost(best, used)
        );
        return Finding::warning(TOPIC, text, advice);
    }
    let missing = match used {
        "ifma" => return Finding::ok(TOPIC, text),
        "avx2" => "no AVX-512 IFMA",
        _ => "neither AVX-512 IFMA nor AVX2 with FMA",
    };
    let advice = format!(
        "the processor has {missing}: proofs on the CPU are faster on a processor that has{}",
        cost("ifma", used)
    );
    Finding::warning(TOPIC, text, advice)
}

/// Returns a name of `[cpu] isa` with what it stands for.
fn described(isa: &str) -> String {
    let meaning = match isa {
        "ifma" => "AVX-512 IFMA",
        "avx2" => "AVX2 with FMA",
        "scalar" => "blst's assembly",
        _ => "plain Rust",
    };
    format!("{isa} ({meaning})")
}

/// Returns what it costs to have `slower` instructions in place of `faster` ones; nothing if
/// nobody measured it.
fn cost(faster: &str, slower: &str) -> String {
    let Some((fast, slow)) = times_bellperson(faster).zip(times_bellperson(slower)) else {
        return String::new();
    };
    format!(
        "; a PoRep of 2 KiB was proved {} times as fast as by bellperson with {faster} on a {}, and \
         {} times with {slower} on a {} (docs/measured.md)",
        fast.0, fast.1, slow.0, slow.1
    )
}

#[cfg(test)]
mod tests {
    use cuzk_testing::folder_of;

    use super::super::finding::Level;
    use super::*;

    /// The names that `[cpu] isa` may have, slowest first.
    const ALL: [&str; 4] = ["portable", "scalar", "avx2", "ifma"];

    #[test]
    fn each_choice_on_each_processor_has_its_line() {
        for (at, best) in ALL.iter().enumerate().skip(1) {
            for used in &ALL[..=at] {
                let found = judge("A CPU", best, used);
                let starts = format!("A CPU: kernels on the CPU use {used} (");
                assert!(found.text.starts_with(&starts), "{found:?}");
                let Some(advice) = &found.advice else {
                    assert_eq!((*best, *used), ("ifma", "ifma"));
                    assert_eq!(found.level, Level::Ok);
                    continue;
                };
                assert_eq!(found.level, Level::Warning);
                let names_a_choice = advice.contains("[cpu] isa = \"auto\"");
                assert_eq!(names_a_choice, best != used, "{advice}");
                if best != used {
                    assert!(advice.contains(&format!("has {best} (")), "{advice}");
                }
            }
        }
    }

    /// Each figure that is told stands on the page of figures.
    #[test]
    fn costs_are_told_where_they_were_measured() {
        let has_figures = |best, used| {
            let advice = judge("A CPU", best, used).advice.unwrap();
            advice.contains("(docs/measured.md)")
        };
        assert!(has_figures("avx2", "avx2"), "no IFMA");
        assert!(has_figures("scalar", "scalar"), "neither");
        assert!(has_figures("ifma", "avx2"));
        assert!(has_figures("ifma", "scalar"));
        assert!(has_figures("avx2", "scalar"));
        for best in ["ifma", "avx2", "scalar"] {
            assert!(!has_figures(best, "portable"), "nobody measured it");
        }
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/measured.md");
        let page = std::fs::read_to_string(page).unwrap();
        let rows = [
            ("ifma", "| PoRep 2 KiB; AMD EPYC (family 26"),
            ("avx2", "| PoRep 2 KiB with AVX2"),
            ("scalar", "| PoRep 2 KiB with scalar instructions"),
        ];
        for (isa, start) in rows {
            let (ratio, processor) = times_bellperson(isa).unwrap();
            let end = format!("| {ratio} |");
            let (before, told) = page.split_once(start).unwrap();
            let told = told.lines().next().unwrap();
            assert!(
                told.ends_with(&end),
                "the row of {isa} has not {end}: {told}"
            );
            // "the same machine" is that of the row before.
            let of_row = format!("{start}{told}");
            let above = before.lines().last().unwrap_or_default();
            let machine = if told.contains("the same machine") {
                above
            } else {
                &*of_row
            };
            assert!(machine.contains(processor), "{isa}: {machine}");
        }
    }

    #[test]
    fn the_line_names_the_processor_and_the_configured_instructions() {
        let root = folder_of(&[("proc/cpuinfo", "model name : A CPU\n")]);
        for isa in Isa::all() {
            let mut config = Config::default();
            config.cpu.isa = isa;
            let found = examine(&config, root.path());
            let starts = format!("A CPU: kernels on the CPU use {isa} (");
            assert!(found.text.starts_with(&starts), "{found:?}");
            assert_eq!(found.level == Level::Ok, Some(isa) == Isa::ifma());
        }
        let nameless = examine(&Config::default(), folder_of(&[]).path());
        assert!(nameless.text.starts_with("a processor without a name"));
    }
}
