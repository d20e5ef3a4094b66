//! The commands that are not run, each with its reason, and those that may end with another
//! exit code than 0.

/// A rule for commands that are not run as they are.
pub(crate) enum Rule {
    /// It is not run, for this reason.
    NotRun(&'static str),
    /// It is run, and ends with one of these exit codes.
    Ends(&'static [i32]),
    /// It starts the daemon of its document, which ends with exit code 0 after a SIGTERM.
    Serves,
    /// It is run if the machine has this program.
    Needs(&'static str),
    /// It is run while a daemon runs, if the machine has these programs.
    Calls(&'static [&'static str]),
}

use Rule::{Calls, Ends, Needs, NotRun, Serves};

const BUILDS: &str = "it builds, and a test would build within a build; .ci/run does the same";
const SERVES: &str = "it serves at fixed ports, or with files that other commands make; the tests \
                      of the daemon run it";
const SYSTEM: &str =
    "it changes the system; .ci/systemd-check and .ci/package-check do it in a root";
const CLUSTER: &str = "it needs a nats-server; the tests of the cluster run it";
const PACKAGE: &str = "it makes or installs a package; .ci/package-check runs it";
const TOOL: &str = "its tool need not be on this machine";
const LONG: &str = "it takes minutes; it is measured by hand";
const LARGE: &str = "it needs the circuit of a 32 GiB sector, which takes minutes to compile";
const PARTITIONS: &str = "thirteen partitions take a minute to prove; it is run by hand, and a test of the engine proves \
     one of them";
const IN_CI: &str = "it is a step of .ci/run or of .ci/nightly";

/// The beginnings of commands. The first that fits a command counts.
pub(crate) const RULES: &[(&str, Rule)] = &[
    ("cargo ", NotRun(BUILDS)),
    (
        "UPDATE_API=1 cargo ",
        NotRun("it writes into the repository"),
    ),
    ("NVCC=$(supraseal-sys/fetch-nvcc.sh) cargo", NotRun(BUILDS)),
    (
        "export NVCC=",
        NotRun("it fetches a compiler; .ci/run does it"),
    ),
    ("export PATH=", NotRun("the test has set the path")),
    ("supraseal-sys/card.sh", NotRun("it needs a GPU")),
    (".ci/", NotRun(IN_CI)),
    (
        "pip install ",
        NotRun("it fetches a tool; the tests of cuzk-python build without it"),
    ),
    (
        "maturin build",
        NotRun("it builds; the tests of cuzk-python load the same library"),
    ),
    (
        "cc ",
        NotRun("it links the library for C; .ci/ffi-check does the same"),
    ),
    (
        "(cd cuzk-ffi/examples/go",
        NotRun("it needs Go; .ci/ffi-check builds the same"),
    ),
    (
        "LD_LIBRARY_PATH=target/release",
        NotRun("its program is C's or Go's; .ci/ffi-check runs both"),
    ),
    ("cuzk prove --request ni.json", NotRun(PARTITIONS)),
    ("cuzk aggregate --porep ni.json", NotRun(PARTITIONS)),
    ("cuzk verify --request ni.json", NotRun(PARTITIONS)),
    ("cuzk serve --listen", Serves),
    ("cuzk --config /etc/cuzk/cuzk.toml serve", Serves),
    ("cuzk serve", NotRun(SERVES)),
    ("cuzk proxy", NotRun(SERVES)),
    ("cuzk worker", NotRun(CLUSTER)),
    ("cuzk --config worker.toml worker", NotRun(CLUSTER)),
    ("cuzk --config daemon.toml serve", NotRun(CLUSTER)),
    ("nats-server", NotRun(CLUSTER)),
    ("openssl ", Needs("openssl")),
    (
        "for role in daemon worker",
        NotRun("it needs nk; the tests of the cluster make such keys"),
    ),
    ("for host in prover-2", Needs("openssl")),
    ("sed -i ", NotRun(CLUSTER)),
    (
        "(cd clients/go && go run",
        NotRun("it calls a daemon; .ci/go-check runs it"),
    ),
    (
        "cd clients/go",
        NotRun("the next line needs a daemon; .ci/go-check runs it"),
    ),
    ("sudo dpkg", NotRun(PACKAGE)),
    ("cuzk/debian/prepare.sh", NotRun(PACKAGE)),
    ("go ", NotRun("it needs Go; .ci/go-check runs it")),
    (
        "cuzk verify --request data/sector-2kib/winning-post.json --proof /tmp/winning.bin",
        NotRun("the proof is that of the Go client; .ci/go-check verifies it"),
    ),
    ("cuzk submit", Calls(&[])),
    ("job=$(cuzk submit", Calls(&[])),
    ("cuzk await", Calls(&[])),
    ("cuzk status", Calls(&[])),
    // The folder of parameters is kept between runs, and an SRS that is there stays.
    ("cuzk params generate-srs", Ends(&[0, 2])),
    (
        "cuzk params fetch",
        NotRun("it fetches 100 GiB; the tests of the fetch run it"),
    ),
    (
        "cuzk vanilla --kind porep --sector-size 32GiB",
        NotRun(LARGE),
    ),
    ("cuzk synth --request porep-32gib.json", NotRun(LARGE)),
    ("cuzk prove --request porep-32gib.json", NotRun(LARGE)),
    (
        "cuzk verify --reference --request porep-32gib.json",
        NotRun(LARGE),
    ),
    (
        "cuzk params generate --kind porep --sector-size 32GiB",
        NotRun("its file has 47 GB"),
    ),
    ("cuzk sweep", NotRun(LONG)),
    ("cuzk tune", NotRun(LONG)),
    ("cuzk plan calibrate", NotRun(LONG)),
    ("cuzk plan check", NotRun(LONG)),
    (
        "cuzk plan --machine this-machine.toml",
        NotRun("its file is that of `plan calibrate`"),
    ),
    (
        "cuzk plan --machine configs/machines/server-64c-512gib-1gpu.toml --load configs/loads/thousand",
        NotRun("it takes ten seconds; a test of the plan has a smaller load"),
    ),
    ("cuzk --config configs/cpu-only.toml bench", NotRun(LONG)),
    ("install ", NotRun(SYSTEM)),
    ("systemd-sysusers", NotRun(SYSTEM)),
    ("systemctl ", NotRun(SYSTEM)),
    ("usermod ", NotRun(SYSTEM)),
    ("grpcurl ", NotRun(TOOL)),
    ("jq ", NotRun(TOOL)),
    ("curl ", Calls(&["curl", "jq"])),
    ("ssh ", NotRun(TOOL)),
    // A machine of the tests may have an error: less memory than a kind needs, for example.
    ("cuzk doctor", Ends(&[0, 1])),
];

/// Returns the rule of a command; none if it must end with 0.
pub(crate) fn rule_of(command: &str) -> Option<&'static Rule> {
    let fits = |(beginning, _): &&(&str, Rule)| command.starts_with(beginning);
    RULES.iter().find(fits).map(|(_, rule)| rule)
}
