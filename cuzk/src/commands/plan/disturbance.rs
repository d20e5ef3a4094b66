//! The effect of other programs on measured costs and on predictions, in words.
//!
//! Not the measurement, which is `cuzk_tune::others`.

/// The share of the processors from which on other programs disturb a measurement.
const DISTURBING_SHARE: f64 = 0.1;

/// The difference up to which a prediction is as good as it should be. docs/plan.md has it.
const DIFFERENCE_MAX: f64 = 0.1;

/// Returns a warning of costs that were measured beside other programs.
pub(super) fn warning(others_share: Option<f64>, assumes_threads: bool) -> Option<String> {
    const AGAIN: &str = "give the command again when nothing else runs";
    if assumes_threads {
        return Some(format!(
            "warning: other programs had most of the cores, so the description assumes how many \
             threads a stage keeps busy; {AGAIN}"
        ));
    }
    let had = disturbing(others_share)?;
    Some(format!(
        "warning: other programs had {had} of the processors, so predictions from this \
         description can be wrong; {AGAIN}"
    ))
}

/// Returns the known reasons for which a prediction with this difference is off; none if it is not.
/// Of others there is the share while the costs were measured, and the share while they were
/// checked.
pub(super) fn reasons(difference: f64, costs: Option<f64>, check: Option<f64>) -> Vec<String> {
    if difference.abs() <= DIFFERENCE_MAX {
        return Vec::new();
    }
    let costs = match (costs, disturbing(costs)) {
        (None, _) => Some(
            "the description does not say how busy the machine was when its costs were measured"
                .to_owned(),
        ),
        (_, Some(had)) => Some(format!(
            "other programs had {had} of the processors when the costs of the description were \
             measured"
        )),
        (_, None) => None,
    };
    let costs = costs.map(|reason| format!("{reason}; calibrate again when nothing else runs"));
    let check = disturbing(check).map(|had| {
        format!(
            "other programs had {had} of the processors during this check; check again when \
             nothing else runs"
        )
    });
    costs.into_iter().chain(check).collect()
}

/// Returns a share that disturbs, in percent.
fn disturbing(share: Option<f64>) -> Option<String> {
    let share = share.filter(|share| *share >= DISTURBING_SHARE)?;
    Some(format!("{:.0} %", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_that_were_measured_beside_others_are_warned_of() {
        for (share, assumes_threads, named) in [
            (None, false, None),
            (Some(0.0), false, None),
            (Some(0.09), false, None),
            (Some(0.48), false, Some("48 % of the processors")),
            (Some(0.98), true, Some("most of the cores")),
            (None, true, Some("most of the cores")),
        ] {
            let warned = warning(share, assumes_threads);
            assert_eq!(warned.is_some(), named.is_some(), "{warned:?}");
            if let (Some(warned), Some(named)) = (warned, named) {
                assert!(
                    warned.contains(named) && warned.contains("; give"),
                    "{warned}"
                );
            }
        }
    }

    #[test]
    fn a_prediction_that_is_off_has_its_reasons() {
        let count = |difference, costs, check| reasons(difference, costs, check).len();
        for difference in [0.6, -0.6] {
            assert_eq!(count(difference, Some(0.0), Some(0.0)), 0);
            assert_eq!(count(difference, Some(0.0), None), 0);
            assert_eq!(count(difference, Some(0.5), Some(0.5)), 2);
            let [costs] = &reasons(difference, Some(0.48), Some(0.02))[..] else {
                panic!("the costs alone");
            };
            assert!(costs.contains("48 %") && costs.contains("; calibrate again"));
            let [check] = &reasons(difference, Some(0.02), Some(0.31))[..] else {
                panic!("the check alone");
            };
            assert!(check.contains("31 %") && check.contains("; check again"));
            let [unknown] = &reasons(difference, None, None)[..] else {
                panic!("an earlier description");
            };
            assert!(unknown.contains("does not say"));
        }
        assert_eq!(count(0.1, None, Some(0.5)), 0);
        assert_eq!(count(-0.05, Some(0.5), Some(0.5)), 0);
    }
}
