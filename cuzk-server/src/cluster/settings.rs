//! The way from the configuration to the settings of the transport.
//!
//! Nothing here connects. The invariant: the files that the settings name could be opened.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cuzk_cluster::name::{BadName, Name};
use cuzk_cluster::nats;
use cuzk_core::config::Cluster;

use crate::tls::{self, Source};

/// A machine of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Its name.
    pub name: Name,
    /// The way to the servers.
    pub transport: nats::Settings,
    /// The limits of what the servers keep.
    pub limits: nats::Limits,
    /// True if a daemon proves itself, too.
    pub is_local: bool,
}

/// A configuration that the transport cannot use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The name of the machine is none.
    #[error("cluster.name: {0}")]
    Name(#[from] BadName),
    /// A file cannot be read.
    #[error("cluster.{key}: {path}: {source}; name a file that this user may read")]
    File {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl ClusterSettings {
    /// Returns the settings of a configuration; none if it has no servers.
    ///
    /// # Errors
    /// A bad name, and a file that cannot be opened.
    pub fn of(cluster: &Cluster) -> Result<Option<Self>, SettingsError> {
        if cluster.servers.is_empty() {
            return Ok(None);
        }
        let certificate = readable("client_certificate", &cluster.client_certificate)?;
        let key = readable("client_key", &cluster.client_key)?;
        Ok(Some(Self {
            name: cluster.name.parse()?,
            transport: nats::Settings {
                addresses: cluster.servers.iter().map(ToString::to_string).collect(),
                credentials: readable("credentials", &cluster.credentials)?,
                server_ca: readable("server_ca", &cluster.server_ca)?,
                client_certificate: certificate.zip(key),
            },
            limits: nats::Limits {
                work_bytes_max: cluster.work_bytes_max,
                object_bytes_max: cluster.object_bytes_max,
                age_max: cluster.age_max,
                replicas: cluster.replicas,
            },
            is_local: cluster.local,
        }))
    }
}

/// Returns the problems of the files that a configuration names, by what is in them. Nothing is
/// sent. A machine with such a file asks the server again and again, and is never let in.
pub(crate) fn problems(cluster: &Cluster) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(path) = &cluster.credentials {
        let checked = nats::check_credentials(path);
        problems.extend(checked.err().map(|error| format!("cluster.{error}")));
    }
    if let Some(path) = &cluster.server_ca {
        let checked = tls::check_authorities(file("cluster.server_ca", path));
        problems.extend(checked.err().map(|error| error.to_string()));
    }
    if let (Some(certificate), Some(key)) = (&cluster.client_certificate, &cluster.client_key) {
        let certificate = file("cluster.client_certificate", certificate);
        let checked = tls::check_pair(certificate, file("cluster.client_key", key));
        problems.extend(checked.err().map(|error| error.to_string()));
    }
    problems
}

fn file<'a>(key: &'static str, path: &'a Path) -> Source<'a> {
    Source { key, path }
}

/// Returns the path of a file that can be opened.
fn readable(key: &'static str, path: &Option<PathBuf>) -> Result<Option<PathBuf>, SettingsError> {
    let Some(path) = path else { return Ok(None) };
    File::open(path).map_err(|source| SettingsError::File {
        key,
        path: path.clone(),
        source,
    })?;
    Ok(Some(path.clone()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cuzk_core::Config;

    use super::*;
    use crate::tls::tests::Authority;

    fn cluster(servers: &[&str]) -> Cluster {
        Cluster {
            servers: servers.iter().map(|text| text.parse().unwrap()).collect(),
            ..Config::default().cluster
        }
    }

    #[test]
    fn no_servers_are_no_cluster() {
        assert!(ClusterSettings::of(&cluster(&[])).unwrap().is_none());
    }

    #[test]
    fn all_of_the_configuration_reaches_the_transport() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, name).unwrap();
            path
        };
        let configured = Cluster {
            name: "prover_7".to_owned(),
            local: false,
            credentials: Some(file("creds")),
            server_ca: Some(file("ca")),
            client_certificate: Some(file("certificate")),
            client_key: Some(file("key")),
            work_bytes_max: 1,
            object_bytes_max: 2,
            age_max: Duration::from_secs(3),
            replicas: 4,
            ..cluster(&["nats://a:4222", "tls://[::1]:1"])
        };
        let settings = ClusterSettings::of(&configured).unwrap().unwrap();
        assert_eq!(settings.name.as_str(), "prover_7");
        let transport = settings.transport;
        assert_eq!(transport.addresses, ["nats://a:4222", "tls://[::1]:1"]);
        assert_eq!(transport.credentials, configured.credentials);
        assert_eq!(transport.server_ca, configured.server_ca);
        let certificate = configured.client_certificate.zip(configured.client_key);
        assert_eq!(transport.client_certificate, certificate);
        let limits = settings.limits;
        assert_eq!((limits.work_bytes_max, limits.object_bytes_max), (1, 2));
        assert_eq!((limits.age_max.as_secs(), limits.replicas), (3, 4));
        assert!(!settings.is_local);
    }

    #[test]
    fn files_that_let_nobody_in_are_problems() {
        let authority = Authority::new();
        authority.sign("one", 2999);
        authority.sign("two", 2999);
        let other = authority.folder.path().join("other");
        std::fs::write(&other, "no certificate").unwrap();
        let good = Cluster {
            server_ca: Some(authority.path("ca", "pem")),
            client_certificate: Some(authority.path("one", "pem")),
            client_key: Some(authority.path("one", "key")),
            ..cluster(&["nats://a:4222"])
        };
        assert!(problems(&good).is_empty(), "{:?}", problems(&good));
        let bad = Cluster {
            credentials: Some(other.clone()),
            server_ca: Some(other.clone()),
            client_key: Some(authority.path("two", "key")),
            ..good.clone()
        };
        let told = problems(&bad);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("cluster.credentials "), "{told:?}");
        assert!(told[1].starts_with("cluster.server_ca: "), "{told:?}");
        assert!(told[2].starts_with("cluster.client_key: "), "{told:?}");
        let bad = Cluster {
            client_certificate: Some(other),
            ..good
        };
        let told = problems(&bad).concat();
        assert!(told.starts_with("cluster.client_certificate: "), "{told}");
    }

    #[test]
    fn a_file_that_is_not_there_is_told_with_its_key() {
        let missing = Cluster {
            server_ca: Some("/no/such/ca.pem".into()),
            ..cluster(&["nats://a:4222"])
        };
        let error = ClusterSettings::of(&missing).unwrap_err().to_string();
        assert!(
            error.starts_with("cluster.server_ca: /no/such/ca.pem: "),
            "{error}"
        );
    }

    /// The configuration and the cluster have the same rule for names.
    #[test]
    fn names_of_the_configuration_are_names_of_the_cluster() {
        let longest = "x".repeat(64);
        for text in [
            "a",
            "prover-7",
            "A_9",
            &longest,
            "a.b",
            "a b",
            "ä",
            &format!("{longest}x"),
        ] {
            let file = format!("[cluster]\nname = {text:?}\n");
            let configured = Config::parse(&file, "test", &cuzk_core::config::Host::detect());
            assert_eq!(configured.is_ok(), text.parse::<Name>().is_ok(), "{text}");
        }
        let of_host = ClusterSettings::of(&cluster(&["nats://a:1"]));
        assert!(of_host.is_ok(), "the name of this host");
    }
}
