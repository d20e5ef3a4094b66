//! The table.

use std::os::unix::fs::PermissionsExt;

use super::case::{Case, Served, which};
use super::{Effect, Row};

type Pair = [&'static str; 2];

/// Files that are not there, of which an error names the one that it is told to read.
const FILES: Pair = ["\"FOLDER/first.pem\"", "\"FOLDER/second.pem\""];
const NAMED: Pair = ["first.pem", "second.pem"];

/// A cluster whose server does not answer.
const CLUSTER: &str = "[cluster]\nservers = [\"nats://127.0.0.1:9\"]\n";

fn shows(key: &'static str, values: Pair, show: fn(&Served) -> String, seen: Pair) -> Row {
    Row {
        key,
        values,
        more: "",
        effect: Effect::Shows(show),
        seen,
    }
}

/// A daemon that ends because of a file that is not there.
fn names_file(key: &'static str, more: &'static str) -> Row {
    Row {
        key,
        values: FILES,
        more,
        effect: Effect::Says(&["serve"]),
        seen: NAMED,
    }
}

fn tells(key: &'static str, values: Pair, tell: fn(&Case) -> String, seen: Pair) -> Row {
    Row {
        key,
        values,
        more: CLUSTER,
        effect: Effect::Tells(tell),
        seen,
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = of_the_process();
    rows.extend(of_the_server());
    rows.extend(of_the_files());
    rows.extend(of_the_cluster());
    rows
}

fn of_the_process() -> Vec<Row> {
    let mut rows = of_the_threads();
    rows.extend([
        Row {
            key: "srs.sources",
            values: ["[\"FOLDER/first\"]", "[\"FOLDER/second\"]"],
            more: "",
            effect: Effect::Says(&FETCH),
            seen: ["/first", "/second"],
        },
        Row {
            key: "cpu.isa",
            values: ["\"scalar\"", "\"portable\""],
            more: "",
            effect: Effect::Says(&["doctor", "--json"]),
            seen: ["use scalar (", "use portable ("],
        },
        shows(
            "logging.level",
            ["\"info\"", "\"error\""],
            |served| told(served.log().contains("serves clients on")),
            ["told", "silent"],
        ),
        shows(
            "logging.format",
            ["\"text\"", "\"json\""],
            format,
            ["text", "json"],
        ),
    ]);
    rows
}

/// A command that asks the sources.
const FETCH: [&str; 6] = [
    "params",
    "fetch",
    "--kind",
    "winning-post",
    "--sector-size",
    "2KiB",
];

/// Returns the format of the log.
fn format(served: &Served) -> String {
    let names = ["text", "json"];
    names[usize::from(served.log().starts_with('{'))].to_owned()
}

/// The numbers of threads, by their names.
fn of_the_threads() -> Vec<Row> {
    let counts = ["1", "3"];
    let shows = |key: &'static str, show: fn(&Served) -> String| shows(key, counts, show, counts);
    vec![
        shows("synthesis.threads", |served| served.threads("cuzk-pool-")),
        shows("synthesis.partition_workers", |served| {
            served.threads("cuzk-synth-")
        }),
        shows("gpus.gpu_threads", |served| {
            served.threads("cuzk-gpu-thread")
        }),
        shows("gpus.gpu_workers_per_device", |served| {
            served.threads("cuzk-dev0-")
        }),
        shows("pipeline.finish_workers", |served| {
            served.threads("cuzk-finish-")
        }),
    ]
}

fn told(is_told: bool) -> String {
    let words = ["silent", "told"];
    words[usize::from(is_told)].to_owned()
}

fn of_the_server() -> Vec<Row> {
    let mut rows = of_the_sockets();
    rows.extend([
        Row {
            more: "[memory]\ntotal_budget = \"1GiB\"\nsafety_margin = \"64MiB\"\n",
            ..shows(
                "server.request_memory",
                ["\"320MiB\"", "\"384MiB\""],
                budget_mib,
                ["640", "576"],
            )
        },
        shows(
            "server.drain_s",
            ["1", "2"],
            Served::stops_within_us,
            ["21000000", "22000000"],
        ),
        shows(
            "server.state_dir",
            ["\"FOLDER/first\"", "\"FOLDER/second\""],
            |served| {
                which(
                    &served.case.path(""),
                    ["first/jobs.redb", "second/jobs.redb"],
                )
            },
            ["first/jobs.redb", "second/jobs.redb"],
        ),
        shows(
            "server.serve_params",
            ["true", "false"],
            |served| served.page("/params/a.vk").0,
            ["HTTP/1.0 200 OK", "HTTP/1.0 404 Not Found"],
        ),
    ]);
    rows
}

fn of_the_sockets() -> Vec<Row> {
    vec![
        shows(
            "server.listen",
            [
                "[\"unix://FOLDER/cuzk.sock\", \"unix://FOLDER/first\"]",
                "[\"unix://FOLDER/cuzk.sock\", \"unix://FOLDER/second\"]",
            ],
            |served| which(&served.case.path(""), ["first", "second"]),
            ["first", "second"],
        ),
        shows(
            "server.http",
            ["\"127.0.0.1:0\"", "\"\""],
            |served| told(served.log().contains("serves HTTP on")),
            ["told", "silent"],
        ),
        shows(
            "server.socket_mode",
            ["\"0600\"", "\"0660\""],
            mode,
            ["600", "660"],
        ),
        Row {
            more: "[server]\nlisten = [\"unix://FOLDER/cuzk.sock\", \"tcp://0.0.0.0:0\"]\n",
            ..shows(
                "server.plaintext_from",
                ["[\"10.0.0.0/8\"]", "[]"],
                |served| told(served.log().contains("serves clients on")),
                ["told", "silent"],
            )
        },
    ]
}

/// The keys that name files which are read before the daemon serves, and a group.
fn of_the_files() -> Vec<Row> {
    vec![
        Row {
            values: ["\"no-such-group-1\"", "\"no-such-group-2\""],
            seen: ["no-such-group-1", "no-such-group-2"],
            ..names_file("server.socket_group", "")
        },
        names_file(
            "server.tls_certificate",
            "[server]\ntls_key = \"FOLDER/key.pem\"\n",
        ),
        names_file(
            "server.tls_key",
            "[server]\ntls_certificate = \"FOLDER/certificate.pem\"\n",
        ),
        names_file(
            "server.client_ca",
            "[server]\ntls_certificate = \"FOLDER/certificate.pem\"\n\
             tls_key = \"FOLDER/key.pem\"\n",
        ),
        names_file(
            "server.tokens",
            "[server]\ntls_certificate = \"FOLDER/certificate.pem\"\n\
             tls_key = \"FOLDER/key.pem\"\n",
        ),
        names_file("cluster.credentials", CLUSTER),
        names_file("cluster.server_ca", CLUSTER),
        names_file(
            "cluster.client_certificate",
            "[cluster]\nservers = [\"nats://127.0.0.1:9\"]\nclient_key = \"FOLDER/key.pem\"\n",
        ),
        names_file(
            "cluster.client_key",
            "[cluster]\nservers = [\"nats://127.0.0.1:9\"]\n\
             client_certificate = \"FOLDER/certificate.pem\"\n",
        ),
    ]
}

fn of_the_cluster() -> Vec<Row> {
    vec![
        shows(
            "cluster.servers",
            ["[\"nats://127.0.0.1:9\"]", "[]"],
            |served| served.cluster()["servers"].to_string(),
            ["[\"nats://127.0.0.1:9\"]", "null"],
        ),
        Row {
            more: CLUSTER,
            ..shows(
                "cluster.local",
                ["true", "false"],
                |served| served.cluster()["local"].to_string(),
                ["true", "false"],
            )
        },
        tells(
            "cluster.name",
            ["\"first\"", "\"second\""],
            |case| case.cluster().name.as_str().to_owned(),
            ["first", "second"],
        ),
        tells(
            "cluster.work_bytes_max",
            ["\"1GiB\"", "1000"],
            |case| case.cluster().limits.work_bytes_max.to_string(),
            ["1073741824", "1000"],
        ),
        tells(
            "cluster.object_bytes_max",
            ["\"1GiB\"", "1000"],
            |case| case.cluster().limits.object_bytes_max.to_string(),
            ["1073741824", "1000"],
        ),
        tells(
            "cluster.age_max_s",
            ["60", "61"],
            |case| case.cluster().limits.age_max.as_secs().to_string(),
            ["60", "61"],
        ),
        tells(
            "cluster.replicas",
            ["1", "3"],
            |case| case.cluster().limits.replicas.to_string(),
            ["1", "3"],
        ),
    ]
}

/// The permissions of the socket.
fn mode(served: &Served) -> String {
    let socket = std::fs::metadata(served.case.path("cuzk.sock")).unwrap();
    format!("{:o}", socket.permissions().mode() & 0o777)
}

/// Returns the part of the budget that is left for the engine, in MiB.
fn budget_mib(served: &Served) -> String {
    let (_, metrics) = served.page("/metrics");
    let mut lines = metrics.lines();
    let bytes = lines.find_map(|line| line.strip_prefix("cuzk_memory_budget_bytes "));
    let bytes: f64 = bytes.unwrap().parse().unwrap();
    (bytes / f64::from(1 << 20)).to_string()
}
