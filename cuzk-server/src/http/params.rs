//! The files of the parameter cache, for other machines that fetch them.
//!
//! Only where the daemon is configured to serve them. The invariant: a name leads to a file
//! of parameters or a verifying key in that folder, and to nothing else.

use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::extract::{Path as UrlPath, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tower::ServiceExt as _;
use tower_http::services::ServeFile;

use super::{Shared, error};

/// Serves a file, or a range of it.
pub(super) async fn params(
    State(shared): State<Shared>,
    UrlPath(name): UrlPath<String>,
    request: Request,
) -> Response {
    let folder = match shared.ask(|sources| sources.served_params()).await {
        Ok(folder) => folder,
        Err(failure) => return failure.into_response(),
    };
    let Some(folder) = folder else {
        let problem = "this daemon serves no parameters; set serve_params in [server]";
        return error(StatusCode::NOT_FOUND, problem);
    };
    let Some(path) = path_of(&folder, &name) else {
        let problem = "a name of parameters ends with .params or .vk, and has no folder";
        return error(StatusCode::NOT_FOUND, problem);
    };
    match ServeFile::new(path).oneshot(request).await {
        Ok(found) if found.status() == StatusCode::NOT_FOUND => {
            error(StatusCode::NOT_FOUND, "no such file in the parameter cache")
        }
        Ok(found) => found.map(Body::new),
        Err(never) => match never {},
    }
}

/// Returns the path of a file that may be served.
fn path_of(folder: &Path, name: &str) -> Option<PathBuf> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_of_kind = name.ends_with(".params") || name.ends_with(".vk");
    let may = is_of_kind && !name.starts_with('.') && name.bytes().all(is_plain);
    may.then(|| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_parameters_have_a_path() {
        let folder = Path::new("/cache");
        for name in ["v28-a_b.params", "v28-a.vk"] {
            assert_eq!(path_of(folder, name), Some(folder.join(name)));
        }
        for name in [
            "",
            ".params",
            "v28-a.pce",
            "../a.params",
            "a/b.vk",
            "a\\b.vk",
            "a.params\0",
            "fetch.lock",
        ] {
            assert_eq!(path_of(folder, name), None, "{name}");
        }
    }
}
