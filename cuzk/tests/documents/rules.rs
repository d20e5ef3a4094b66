//! The commands that are not run, each with its reason. Commands that need a program or a daemon, or
//! that may end with another exit code than 0, are here too.

/// A rule for commands that are not run as they are.
pub(crate) enum Rule {
    /// It is not run, for this reason. [`crate::parsed`] reads it.
    NotRun(&'static str),
    /// It is run by `.ci/nightly documents` only, because it takes too long. Else
    /// [`crate::parsed`] reads it. The text names what runs a shorter one.
    Long(&'static str),
    /// It is run, and ends with one of these exit codes.
    Ends(&'static [i32]),
    /// It starts the daemon of its document, which ends with exit code 0 after a SIGTERM. It is run
    /// if the machine has these programs.
    Serves(&'static [&'static str]),
    /// It starts what goes on beside the commands that follow, if the machine has these programs.
    Starts(&'static [&'static str], Ready),
    /// It is run if the machine has these programs.
    Needs(&'static [&'static str]),
    /// It is run while a daemon runs, if the machine has these programs.
    Calls(&'static [&'static str]),
    /// It is run with one more option, which has the program read the others only. The machine must
    /// have the program.
    With(&'static [&'static str], &'static str),
}

/// When what was started is ready.
pub(crate) enum Ready {
    /// It is a server of a cluster, and its log has this text.
    Server(&'static str),
    /// It is a worker, and is connected to the server.
    Worker,
    /// It makes this socket, through which a daemon can be called.
    Socket(&'static str),
}

impl Rule {
    /// Returns the programs that the machine must have.
    pub(crate) fn tools(&self) -> &'static [&'static str] {
        match self {
            Self::NotRun(_) | Self::Long(_) | Self::Ends(_) => &[],
            Self::Serves(tools)
            | Self::Starts(tools, _)
            | Self::Needs(tools)
            | Self::Calls(tools)
            | Self::With(tools, _) => tools,
        }
    }
}

use Rule::{Calls, Ends, Long, Needs, NotRun, Serves, Starts, With};

const BUILDS: &str = "it builds, and a test would build within a build; .ci/run does the same";
const SYSTEM: &str = "it changes the system; .ci/systemd-check runs it in a folder";
const PACKAGE: &str = "it makes or installs a package; .ci/package-check runs it";
const WHEEL: &str = "it makes or installs a package for Python; .ci/wheel-check does the same";
const NATIVE: &str = "its library is another build's; .ci/ffi-check runs it";
const GO: &str = "it needs Go; .ci/go-check runs it";
const SWEEP: &str = "it takes an hour; cuzk/tests/sweep.rs runs a shorter one";
const HOUR: &str = "it takes an hour; cuzk/tests/cli.rs runs a shorter one";
const LARGE: &str = "it takes gigabytes and minutes; .ci/full-size does the same for each kind";
const PARTITIONS: &str = "a test of the engine proves one of the thirteen partitions";
const BENCH: &str = "it measures for minutes; .ci/run runs each target once";
const IN_CI: &str = "it is a step of .ci/run or of .ci/nightly";
const SERVER: &[&str] = &["nats-server"];
const SERVER_WITH_KEYS: &[&str] = &["nats-server", "nk", "openssl"];

/// The beginnings of commands. The first that fits a command counts.
pub(crate) static RULES: &[(&str, Rule)] = &[
    ("cargo bench", NotRun(BENCH)),
    ("CUZK_BENCH_SVG=1 cargo bench", NotRun(BENCH)),
    ("cargo install cargo-deb", NotRun(PACKAGE)),
    ("cargo deb", NotRun(PACKAGE)),
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
    ("pip install ", NotRun(WHEEL)),
    ("maturin build", NotRun(WHEEL)),
    ("cc ", NotRun(NATIVE)),
    ("(cd cuzk-ffi/examples/go", NotRun(NATIVE)),
    ("LD_LIBRARY_PATH=target/release", NotRun(NATIVE)),
    ("cuzk prove --request ni.json", Long(PARTITIONS)),
    ("cuzk aggregate --porep ni.json", Long(PARTITIONS)),
    ("cuzk verify --request ni.json", Long(PARTITIONS)),
    (
        "cuzk prove --config on.toml",
        NotRun("its ten sectors take minutes to seal and to prove"),
    ),
    ("cuzk serve --cluster", Serves(SERVER)),
    ("cuzk --config daemon.toml serve", Serves(SERVER_WITH_KEYS)),
    ("cuzk serve", Serves(&[])),
    ("cuzk --config /etc/cuzk/cuzk.toml serve", Serves(&[])),
    (
        "cuzk proxy",
        Starts(&[], Ready::Socket("/run/cuzk/remote.sock")),
    ),
    ("cuzk worker", Starts(SERVER, Ready::Worker)),
    (
        "cuzk --config worker.toml worker",
        Starts(SERVER_WITH_KEYS, Ready::Worker),
    ),
    (
        "nats-server --config configs/nats/loopback.conf",
        Starts(SERVER, Ready::Server("Server is ready")),
    ),
    (
        "nats-server",
        Starts(SERVER_WITH_KEYS, Ready::Server("Server is ready")),
    ),
    ("openssl ", Needs(&["openssl"])),
    ("for role in daemon worker", Needs(&["nk"])),
    ("for host in prover-2", Needs(&["openssl"])),
    ("sed -i ", Needs(&["nk"])),
    ("(cd clients/go && go run", NotRun(GO)),
    ("cd clients/go", NotRun(GO)),
    ("go run ", NotRun(GO)),
    (
        "go get ",
        NotRun("the module is not published; .ci/go-check uses it from the repository"),
    ),
    ("sudo dpkg", NotRun(PACKAGE)),
    ("cuzk/debian/prepare.sh", NotRun(PACKAGE)),
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
        NotRun("it fetches 100 GiB; cuzk/tests/fetch.rs fetches smaller files"),
    ),
    (
        "cuzk vanilla --kind porep --sector-size 32GiB",
        NotRun(LARGE),
    ),
    (
        "cuzk synth --request porep-32gib.json",
        NotRun(
            "it compiles the circuit of 32 GiB for minutes; the step circuits of .ci/nightly does the same",
        ),
    ),
    ("cuzk prove --request porep-32gib.json", NotRun(LARGE)),
    (
        "cuzk verify --reference --request porep-32gib.json",
        NotRun(LARGE),
    ),
    (
        "cuzk params generate --kind porep --sector-size 32GiB",
        NotRun(LARGE),
    ),
    ("cuzk sweep --short", Long("cuzk/tests/sweep.rs")),
    ("cuzk sweep", NotRun(SWEEP)),
    ("cuzk tune", Long("cuzk/tests/cli.rs")),
    ("cuzk bench interventions", NotRun(HOUR)),
    (
        "cuzk --config configs/cpu-only.toml bench interventions",
        NotRun(HOUR),
    ),
    ("cuzk plan calibrate", Long("nothing does")),
    ("cuzk plan check", Long("cuzk/tests/cli/plan.rs")),
    (
        "cuzk plan --machine configs/machines/server-64c-512gib-1gpu.toml --load configs/loads/thousand",
        Long("cuzk-plan/tests/fleet.rs"),
    ),
    ("install ", NotRun(SYSTEM)),
    ("systemd-sysusers", NotRun(SYSTEM)),
    ("systemctl ", NotRun(SYSTEM)),
    ("usermod ", NotRun(SYSTEM)),
    ("jq ", Calls(&["jq", "grpcurl"])),
    ("grpcurl ", Calls(&["grpcurl"])),
    ("curl ", Calls(&["curl", "jq"])),
    ("ssh ", With(&["ssh"], "-G")),
    // A machine of the tests may have an error: less memory than a kind needs, for example.
    ("cuzk doctor", Ends(&[0, 1])),
];

/// Returns the rule of a command; none if it must end with 0.
pub(crate) fn rule_of(command: &str) -> Option<&'static Rule> {
    let fits = |(beginning, _): &&(&str, Rule)| command.starts_with(beginning);
    RULES.iter().find(fits).map(|(_, rule)| rule)
}
