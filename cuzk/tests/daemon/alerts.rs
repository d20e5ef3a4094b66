//! The alerts and the dashboard of `configs`, held against what a running daemon exports.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::fixture::{Daemon, prove, request, verify};

const PREFIX: &str = "cuzk_";

fn config(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The names of our metrics in an expression.
fn names(expression: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = expression.split(|letter| !is_part(letter));
    let ours = words.filter(|word| word.starts_with(PREFIX));
    ours.map(str::to_owned).collect()
}

/// The expressions of the panels, and of the variables.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let of_targets = targets.map(|target| &target["expr"]);
    let of_variables = variables.map(|variable| &variable["query"]);
    let all = of_targets.chain(of_variables);
    all.map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// The labels by which an expression chooses series of our metrics, as `NAME{LABEL`.
fn chosen_labels(expression: &str) -> BTreeSet<String> {
    let mut labels = BTreeSet::new();
    for name in names(expression) {
        let start = format!("{name}{{");
        for choice in expression.split(&start).skip(1) {
            let (choice, _) = choice.split_once('}').unwrap();
            // A comma in a value would be in quotes, and no value has one.
            for one in choice.split(',') {
                let label = one.split(['=', '!']).next().unwrap();
                labels.insert(format!("{name}{{{label}"));
            }
        }
    }
    labels
}

fn is_balanced(expression: &str) -> bool {
    [('(', ')'), ('{', '}'), ('[', ']')]
        .iter()
        .all(|(open, close)| {
            expression.matches(*open).count() == expression.matches(*close).count()
        })
}

/// Each rule has a name, an expression, a time, a severity and words for a person.
fn check_rules(rules: &str) {
    let each: Vec<_> = rules.split("      - alert: ").skip(1).collect();
    assert!(each.len() >= 6, "{}", each.len());
    for rule in each {
        let lines: Vec<_> = rule.lines().collect();
        let fields = [
            "        expr: ",
            "        for: ",
            "        labels:",
            "          severity: ",
            "        annotations:",
            "          summary: \"",
            "          description: \"",
        ];
        assert!(lines[0].starts_with("Cuzk"), "{rule}");
        assert_eq!(lines.len(), fields.len() + 1, "{rule}");
        for (line, field) in lines[1..].iter().zip(fields) {
            assert!(line.starts_with(field), "{rule}: {line:?}, not {field:?}");
        }
        let expression = lines[1].trim_start_matches(fields[0]);
        assert!(is_balanced(expression), "{expression}");
        // In YAML a colon and a space, or a number sign after a space, end a plain text.
        assert!(!expression.contains(": ") && !expression.contains(" #"));
        let severity = lines[4].trim_start_matches(fields[3]);
        assert!(["page", "ticket"].contains(&severity), "{rule}");
    }
}

#[tokio::test]
async fn every_metric_of_an_alert_or_a_panel_is_exported() {
    let rules = config("prometheus/cuzk.rules.yml");
    check_rules(&rules);
    let dashboard: Value = serde_json::from_str(&config("grafana/cuzk.json")).unwrap();
    let expressions = expressions(&dashboard);
    assert!(expressions.iter().all(|expression| is_balanced(expression)));
    let of_rules = rules.lines().filter(|line| line.contains("expr: "));
    let of_rules: BTreeSet<_> = of_rules.flat_map(names).collect();
    let of_panels: BTreeSet<_> = expressions.iter().flat_map(|text| names(text)).collect();
    assert!(of_rules.len() >= 8 && of_panels.len() >= 12);

    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let response = prove(&mut client, request("window-post")).await.unwrap();
    verify("window-post", &response);
    let (_, metrics) = daemon.page("/metrics");
    let exported: BTreeSet<_> = metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    // A label that no sample has chooses nothing, and its alert never fires.
    let of_rules_lines = rules.lines().filter(|line| line.contains("expr: "));
    let all = of_rules_lines.chain(expressions.iter().map(String::as_str));
    let chosen: BTreeSet<_> = all.flat_map(chosen_labels).collect();
    assert!(chosen.len() >= 8, "{chosen:#?}");
    for chosen in &chosen {
        let (name, label) = chosen.split_once('{').unwrap();
        // The scraper adds the instance.
        let (name, pair) = (format!("{name}{{"), format!("{label}=\""));
        let is_one = |line: &str| line.starts_with(&name) && line.contains(&pair);
        let is_there = metrics.lines().any(is_one);
        assert!(label == "instance" || is_there, "{chosen} is not exported");
    }
    for name in of_rules.union(&of_panels) {
        assert!(
            exported.contains(&**name),
            "{name} is not among {exported:#?}"
        );
    }
}
