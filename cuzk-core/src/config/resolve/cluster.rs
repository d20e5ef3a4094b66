//! The way from `[cluster]` of a file to the configuration of a cluster.
//!
//! Not its connection: a server that does not answer, or a file that is not there, is noticed
//! at the start. The invariants are those of [`Cluster`].

use super::super::cluster::{Cluster, ClusterServer, REPLICAS_MAX, is_name, name_of_host};
use super::super::file::{ClusterSection, Field};
use super::super::keys::expected;
use super::super::problem::ProblemKind;
use super::super::values::Check;
use super::server::path;

const SECTION: &str = "cluster";

/// The size of the stream of work. It has room for 7,000 partitions of 32 GiB PoReps.
const WORK_BYTES_DEFAULT: u64 = 8 << 30;

/// The size of the store of long inputs: WindowPoSts of 32 GiB, of up to 60 MB each.
const OBJECT_BYTES_DEFAULT: u64 = 4 << 30;

/// Returns the configuration of a cluster.
pub(super) fn cluster(check: &mut Check<'_>, section: &ClusterSection) -> Cluster {
    let mut size = |key, field| check.size(SECTION, key, field);
    let work_bytes_max = size("work_bytes_max", &section.work_bytes_max);
    let object_bytes_max = size("object_bytes_max", &section.object_bytes_max);
    let cluster = Cluster {
        servers: servers(check, &section.servers),
        name: name(check, &section.name),
        local: section.local.as_ref().is_none_or(|local| *local.get_ref()),
        credentials: path(&section.credentials),
        server_ca: path(&section.server_ca),
        client_certificate: path(&section.client_certificate),
        client_key: path(&section.client_key),
        work_bytes_max: work_bytes_max.unwrap_or(WORK_BYTES_DEFAULT),
        object_bytes_max: object_bytes_max.unwrap_or(OBJECT_BYTES_DEFAULT),
        age_max: check.seconds(SECTION, "age_max_s", &section.age_max_s, 24 * 3600),
        replicas: replicas(check, &section.replicas),
    };
    note_missing(check, section, &cluster);
    for (key, field) in [
        ("credentials", &section.credentials),
        ("server_ca", &section.server_ca),
        ("client_certificate", &section.client_certificate),
        ("client_key", &section.client_key),
    ] {
        check.check_path(SECTION, key, field);
    }
    cluster
}

/// Notes a certificate without its key, and a key without its certificate.
fn note_missing(check: &mut Check<'_>, section: &ClusterSection, cluster: &Cluster) {
    let has_certificate = cluster.client_certificate.is_some();
    let has_key = cluster.client_key.is_some();
    for (name, field, needs) in [
        (
            "client_certificate",
            &section.client_certificate,
            "client_key",
        ),
        ("client_key", &section.client_key, "client_certificate"),
    ] {
        if let Some(at) = field.as_ref().filter(|at| !at.get_ref().is_empty())
            && has_certificate != has_key
        {
            check.note(SECTION, name, at, ProblemKind::Needs { needs });
        }
    }
}

/// Servers, each once.
fn servers(check: &mut Check<'_>, field: &Field<Vec<String>>) -> Vec<ClusterServer> {
    let Some(value) = field else {
        return Vec::new();
    };
    let mut servers = Vec::new();
    for text in value.get_ref() {
        match text.parse() {
            Ok(server) if servers.contains(&server) => {}
            Ok(server) => servers.push(server),
            Err(error) => check.note(SECTION, "servers", value, ProblemKind::BadServer(error)),
        }
    }
    servers
}

fn name(check: &mut Check<'_>, field: &Field<String>) -> String {
    let of_host = name_of_host(check.host.name.as_deref().unwrap_or_default());
    let Some(value) = field.as_ref().filter(|value| !value.get_ref().is_empty()) else {
        return of_host;
    };
    let name = value.get_ref();
    if is_name(name) {
        return name.clone();
    }
    let kind = ProblemKind::UnknownValue {
        expected: expected(SECTION, "name"),
        got: name.clone(),
    };
    check.note(SECTION, "name", value, kind);
    of_host
}

fn replicas(check: &mut Check<'_>, field: &Field<i64>) -> usize {
    let replicas = check.positive(SECTION, "replicas", field, REPLICAS_MAX as u64);
    replicas
        .and_then(|replicas| usize::try_from(replicas).ok())
        .unwrap_or(1)
}
