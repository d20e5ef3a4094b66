//! The result for people.

use super::row::Row;

/// Shorter times are left out. So are inflations of shorter times.
const SHORT_S: f64 = 0.0005;

/// Returns the rows as tables: throughput, then stages, idle times and counts.
pub(super) fn text(title: &str, rows: &[Row]) -> String {
    let mut lines = vec![
        title.to_owned(),
        "`ratio` is throughput by that of arm `none`; < and > where the rounds tell that it \
         differs (one-sided sign test, 5 %). `of j=1` is throughput by that with one in flight."
            .to_owned(),
        String::new(),
        "pipeline  arm           c    j  s/proof  noise  ratio  better  of j=1    mean     p95  \
         device  use %  idle s   peak MB"
            .to_owned(),
    ];
    lines.extend(rows.iter().map(throughput));
    lines.extend([
        String::new(),
        "Stages of a partition: seconds (by those alone).".to_owned(),
    ]);
    lines.extend(rows.iter().map(stages));
    lines.extend([
        String::new(),
        "Idle seconds of the devices by what they waited for.".to_owned(),
    ]);
    lines.extend(rows.iter().map(idle));
    lines.extend([
        String::new(),
        "pipeline  arm           c    j   user s  system s    faults  shootdowns  dTLB misses  \
         MB/s  huge pages"
            .to_owned(),
    ]);
    lines.extend(rows.iter().map(counts));
    lines.join("\n")
}

fn name(row: &Row) -> String {
    let setting = row.setting;
    let (pipeline, arm) = (setting.pipeline, setting.arm);
    format!("{pipeline:<9} {arm:<10} {:>4} {:>4}", setting.c, setting.j)
}

/// Returns a figure with so many decimals, or `n/a`.
fn figure(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "n/a".to_owned(), |value| format!("{value:.decimals$}"))
}

fn throughput(row: &Row) -> String {
    let mark = match row.faster {
        Some(true) => '>',
        Some(false) => '<',
        None => ' ',
    };
    let noise = row.noise.map(|noise| format!("{:.0}%", noise * 100.0));
    let noise = noise.unwrap_or_else(|| "n/a".to_owned());
    let better = row.better_rounds.map_or_else(
        || "n/a".to_owned(),
        |better| format!("{better}/{}", row.rounds),
    );
    let peak = row.peak_rss_bytes.map(|bytes| bytes as f64 / 1e6);
    format!(
        "{} {:>8.4} {noise:>6} {:>6}{mark} {better:>6} {:>7} {:>7.3} {:>7.3} {:>7.4} {:>6.1} \
         {:>7.3} {:>9}",
        name(row),
        row.s_per_proof,
        figure(row.ratio, 3),
        figure(row.of_isolation, 3),
        row.mean_prove_s,
        row.p95_prove_s,
        row.device_s_per_partition,
        row.utilisation * 100.0,
        row.idle_s,
        figure(peak, 0),
    )
}

fn stages(row: &Row) -> String {
    let shown = row.stages.iter().filter(|(_, stage)| stage.s >= SHORT_S);
    let stages = shown.map(|(name, stage)| {
        let is_told = |by: &f64| stage.s / by >= SHORT_S;
        let inflation = stage.inflation.filter(is_told);
        let inflation = inflation.map_or_else(String::new, |by| format!(" (×{by:.2})"));
        format!("{name} {:.3}{inflation}", stage.s)
    });
    format!("{}  {}", name(row), stages.collect::<Vec<_>>().join(", "))
}

fn idle(row: &Row) -> String {
    let causes = row.idle_causes.iter().filter(|(_, s)| **s >= SHORT_S);
    let causes: Vec<_> = causes.map(|(cause, s)| format!("{cause} {s:.3}")).collect();
    format!(
        "{}  {:.0} gaps, the longest {:.3}; {}",
        name(row),
        row.idle_gaps,
        row.longest_gap_s,
        causes.join(", ")
    )
}

fn counts(row: &Row) -> String {
    format!(
        "{} {:>8.3} {:>9.3} {:>9.0} {:>11} {:>12} {:>5} {:>11}",
        name(row),
        row.user_s,
        row.system_s,
        row.page_faults,
        figure(row.tlb_shootdowns, 0),
        figure(row.dtlb_misses, 0),
        figure(row.bytes_per_s.map(|bytes| bytes / 1e6), 0),
        figure(row.huge_page_share, 2),
    )
}
