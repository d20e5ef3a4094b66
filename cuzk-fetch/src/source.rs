//! The places that files come from, as an operator writes them.
//!
//! A source here is only a name: nothing is opened. The invariant: the text of a source has
//! no credentials, so it can be printed and kept.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use ureq::http::Uri;

use crate::ListedFile;

/// A place that has files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder with the files under their names.
    Folder(PathBuf),
    /// A base URL, to which the name of a file is added. It ends with a slash.
    Http(String),
    /// The URL of an IPFS gateway, to which a content identifier is added. It ends with a
    /// slash.
    Ipfs(String),
    /// The host and port of a daemon that serves its parameters over HTTP.
    Daemon(String),
}

impl Source {
    /// Returns the URL of a file; nothing for a folder.
    #[must_use]
    pub fn url(&self, file: &ListedFile) -> Option<String> {
        match self {
            Self::Folder(_) => None,
            Self::Http(base) => Some(format!("{base}{}", file.name)),
            Self::Ipfs(gateway) => Some(format!("{gateway}{}", file.cid)),
            Self::Daemon(address) => Some(format!("http://{address}/params/{}", file.name)),
        }
    }

    /// Parses the gateway that the variable `IPFS_GATEWAY` of the proofs libraries names,
    /// such as `https://gateway.example/ipfs/`.
    ///
    /// # Errors
    /// The text says what is wrong with it.
    pub fn gateway(text: &str) -> Result<Self, String> {
        let url = if text.contains("://") {
            text.to_owned()
        } else {
            format!("{}://{text}", scheme_for(text))
        };
        let base = base(&url)?;
        let has_path = base.matches('/').count() > 3;
        let path = if has_path { "" } else { "ipfs/" };
        Ok(Self::Ipfs(format!("{base}{path}")))
    }
}

/// Returns the scheme of a gateway that names none. A gateway on this machine has no
/// certificate.
fn scheme_for(authority: &str) -> &'static str {
    let is_local = ["127.", "localhost", "[::1]"]
        .iter()
        .any(|host| authority.starts_with(host));
    if is_local { "http" } else { "https" }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            check_credentials(text)?;
        }
        if let Some(gateway) = text.strip_prefix("ipfs://") {
            return Self::gateway(gateway);
        }
        if let Some(address) = text.strip_prefix("cuzk://") {
            let url = base(&format!("http://{address}"))?;
            let address = url.trim_start_matches("http://").trim_end_matches('/');
            let has_port = address.rsplit(':').next().is_some_and(|port| {
                !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
            });
            if address.contains('/') || !has_port {
                return Err(format!("{text:?} is no daemon; write cuzk://HOST:PORT"));
            }
            return Ok(Self::Daemon(address.to_owned()));
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return base(text).map(Self::Http);
        }
        if text.is_empty() || text.contains("://") {
            return Err(format!(
                "{text:?} is no source; write a folder, https://HOST/PATH, ipfs://GATEWAY or \
                 cuzk://HOST:PORT"
            ));
        }
        Ok(Self::Folder(text.into()))
    }
}

/// Checks that an address has no name and no password. The error does not show them.
fn check_credentials(url: &str) -> Result<(), String> {
    match url.contains('@') {
        true => Err("an address with a name or password; a source takes none".to_owned()),
        false => Ok(()),
    }
}

/// Returns a URL with a slash at its end, to which a name can be added.
fn base(url: &str) -> Result<String, String> {
    check_credentials(url)?;
    let parsed: Uri = url
        .parse()
        .map_err(|error| format!("{url:?} is no address: {error}"))?;
    if parsed.host().is_none_or(str::is_empty) || parsed.query().is_some() || url.contains('#') {
        return Err(format!(
            "{url:?} is no base; a base has a host, and no '?' or '#'"
        ));
    }
    Ok(format!("{}/", url.trim_end_matches('/')))
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Http(base) => f.write_str(base),
            Self::Ipfs(gateway) => write!(f, "ipfs://{gateway}"),
            Self::Daemon(address) => write!(f, "cuzk://{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Option<String> {
        let file = ListedFile {
            name: "x.params".to_owned(),
            cid: "Qm1".to_owned(),
            digest: crate::Digest::of_bytes(b""),
            sector_size_bytes: 2048,
        };
        let source: Source = text.parse().unwrap();
        // A source that is written and read again is the same one.
        assert_eq!(source.to_string().parse(), Ok(source.clone()));
        source.url(&file)
    }

    #[test]
    fn a_file_has_a_url_at_each_source() {
        for (source, expected) in [
            ("http://h/a/b", "http://h/a/b/x.params"),
            ("https://h:8443/", "https://h:8443/x.params"),
            ("ipfs://gateway.example", "https://gateway.example/ipfs/Qm1"),
            ("ipfs://localhost:8080", "http://localhost:8080/ipfs/Qm1"),
            ("ipfs://[::1]:8080", "http://[::1]:8080/ipfs/Qm1"),
            ("ipfs://https://h/other/ipfs/", "https://h/other/ipfs/Qm1"),
            (
                "cuzk://10.0.0.1:9821",
                "http://10.0.0.1:9821/params/x.params",
            ),
            ("cuzk://[::1]:9821", "http://[::1]:9821/params/x.params"),
        ] {
            assert_eq!(url(source).as_deref(), Some(expected), "{source}");
        }
        assert_eq!(url("/mnt/parameters"), None);
        assert_eq!(url("parameters"), None);
    }

    #[test]
    fn a_source_that_cannot_be_one_is_refused() {
        for text in [
            "",
            "ftp://h/",
            "http://",
            "http://user:word@h/",
            "http://h/?key=1",
            "http://h/#a",
            "http://h h/",
            "ipfs://",
            "cuzk://h",
            "cuzk://h:",
            "cuzk://h:1/path",
            "cuzk://",
        ] {
            let source = text.parse::<Source>();
            assert!(source.is_err(), "{text}: {source:?}");
        }
        for text in ["http://user:word@h/", "ftp://user:word@h/"] {
            let problem = text.parse::<Source>().unwrap_err();
            assert!(!problem.contains("word@"), "{problem}");
        }
    }
}
