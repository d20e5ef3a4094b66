use proptest::prelude::*;
use svg::parser::{Event, Parser};

use super::*;
use crate::testing::pipeline;

/// Returns two attributes, as numbers, of each element of this name in the picture.
fn elements(text: &str, name: &str, attributes: [&str; 2]) -> Vec<[f64; 2]> {
    let tags = Parser::new(text).filter_map(|event| match event {
        Event::Tag(tag, _, found) if tag == name => Some(found),
        Event::Error(error) => panic!("{error}"),
        _ => None,
    });
    let values = tags.filter_map(|found| {
        let value = |attribute| found.get(attribute)?.parse().ok();
        Some([value(attributes[0])?, value(attributes[1])?])
    });
    values.collect()
}

fn filled(text: &str, fill: &str) -> usize {
    text.matches(&format!("<rect fill=\"{fill}\"")).count()
}

#[test]
fn every_span_is_drawn_and_every_gap_marked() {
    let spans = pipeline(3, 4);
    let text = waterfall_svg(&spans, &WaterfallOptions::default());
    assert!(text.starts_with("<svg") && text.ends_with("</svg>"));
    for stage in Stage::ALL {
        let found = spans.iter().filter(|span| span.stage == stage).count();
        // A span on a device stands in the device's row and in the thread's row.
        let rows = match stage {
            Stage::Device | Stage::Columns | Stage::Quotient | Stage::Msm => 2,
            _ => 1,
        };
        // One more in the legend.
        let expected = rows * found + usize::from(found > 0);
        assert_eq!(filled(&text, colour(stage)), expected, "{stage}");
    }
    let used = device_use(&spans);
    assert!(!used[0].gaps.is_empty());
    assert_eq!(filled(&text, IDLE), used[0].gaps.len() + 1);
    assert!(text.contains(&format!("{}, the longest:", used[0])));
    // The test's pipeline has these durations.
    assert!(text.contains("witness 12 × 4.0 ms"));
}

fn is_inside(text: &str, options: &WaterfallOptions) {
    let width = f64::from(options.width);
    let height = elements(text, "svg", ["width", "height"])[0][1];
    for [x, wide] in elements(text, "rect", ["x", "width"]) {
        assert!(x >= 0.0 && wide > 0.0 && x + wide <= width, "{x} {wide}");
    }
    for [y, high] in elements(text, "rect", ["y", "height"]) {
        assert!(y >= 0.0 && high > 0.0 && y + high <= height, "{y} {high}");
    }
}

proptest! {
    #[test]
    fn whatever_ran_makes_a_picture_and_nothing_lies_outside(
        all in prop::collection::vec(
            (0..Stage::ALL.len(), 0u64..4, 0u64..2_000_000_000, 0u64..1_000_000_000),
            0..40,
        ),
        zoom in 0u32..9,
    ) {
        let unit = 10_u64.pow(zoom);
        let span = |&(stage, place, start, length): &(usize, u64, u64, u64)| Span {
            job: (place > 0).then_some(place),
            partition: (place > 0).then_some(7),
            device: usize::try_from(place).ok().filter(|device| *device < 3),
            stage: Stage::ALL[stage],
            served: None,
            stood_aside: None,
            lane: crate::Lane::new(&format!("w-{}", place % 2)),
            start: Duration::from_nanos(start / unit),
            end: Duration::from_nanos((start + length) / unit),
        };
        let spans: Vec<_> = all.iter().map(span).collect();
        let options = WaterfallOptions::default();
        is_inside(&waterfall_svg(&spans, &options), &options);
    }
}

#[test]
fn no_spans_or_spans_of_no_length_make_a_picture() {
    let options = WaterfallOptions::default();
    assert!(waterfall_svg(&[], &options).contains("0 job(s), 0 partition(s), 0.000 s"));
    let mut span = pipeline(1, 1)[0].clone();
    span.end = span.start;
    let text = waterfall_svg(&[span], &options);
    assert_eq!(elements(&text, "rect", ["x", "width"]).len(), 2);
}

#[test]
fn names_are_text_and_never_markup() {
    let mut spans = pipeline(1, 1);
    for span in &mut spans {
        span.lane = crate::Lane::new("<script>&\"");
    }
    let options = WaterfallOptions {
        title: "</svg>".to_owned(),
        ..WaterfallOptions::default()
    };
    let text = waterfall_svg(&spans, &options);
    assert!(!text.contains("<script"));
    assert!(text.contains("&lt;script&gt;&amp;"));
    assert_eq!(text.matches("</svg>").count(), 1);
}

#[test]
fn a_long_queue_is_cut_and_says_so() {
    let mut spans = Vec::new();
    for job in 0..40 {
        let mut span = pipeline(1, 1)[0].clone();
        (span.job, span.stage) = (Some(job), Stage::QueueWait);
        span.end = span.start + Duration::from_millis(1);
        spans.push(span);
    }
    let options = WaterfallOptions::default();
    let text = waterfall_svg(&spans, &options);
    assert_eq!(
        filled(&text, colour(Stage::QueueWait)),
        options.queued_drawn + 1
    );
    assert!(text.contains("and up to 8 more at a time"));
}

#[test]
fn ticks_are_round_and_few() {
    for (length_ms, step_ms, decimals) in [
        (610, 100, 1),
        (1_000, 100, 1),
        (2_500, 500, 1),
        (12_000, 1_000, 0),
        (12_001, 2_000, 0),
        (760_000, 100_000, 0),
        (10, 1, 3),
    ] {
        let step = Duration::from_millis(step_ms);
        let ticks = Ticks::over(Duration::from_millis(length_ms));
        assert_eq!(ticks, Ticks { step, decimals }, "{length_ms}");
    }
}

#[test]
fn devices_and_jobs_have_their_names_and_background_work_its_stage() {
    let mut spans = pipeline(2, 1);
    spans.push(Span {
        job: None,
        partition: None,
        device: None,
        stage: Stage::Multiples,
        served: None,
        stood_aside: Some(Duration::from_micros(300)),
        lane: crate::Lane::new("cuzk-multiples"),
        start: Duration::ZERO,
        end: Duration::from_millis(1),
    });
    let mut names = Names::default();
    names.name_device(0, "CPU");
    names.name_job(0, "porep 2KiB");
    let options = WaterfallOptions {
        names,
        ..WaterfallOptions::default()
    };
    let text = waterfall_svg(&spans, &options);
    for shown in [
        "device 0 (CPU)",
        "job 0 (porep 2KiB), partition 0",
        "device 0 (CPU): ",
        "multiples, in the background",
        "stood aside for 0.0003 s",
        "2 job(s), 2 partition(s)",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    // The second job has no name.
    assert!(text.contains("job 1, partition 0") && !text.contains("1.0<"));
}
