//! `cuzk reload`: makes a daemon read its configuration again.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::client::{Daemon, wait};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Reload {
    #[command(flatten)]
    daemon: Daemon,
}

#[derive(Debug, Serialize)]
struct Reloaded {
    changed: Vec<String>,
    need_restart: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Reload) -> Result<(), Failure> {
    let reply = wait("the daemon may have reloaded", async {
        let client = args.daemon.connect().await?;
        Ok(client.reload().await?)
    })?;
    let reloaded = Reloaded {
        changed: reply.changed,
        need_restart: reply.need_restart,
    };
    output::print(context.json, &reloaded, text)
}

fn text(reloaded: &Reloaded) -> String {
    let list = |what: &str, keys: &[String]| match keys {
        [] => None,
        keys => Some(format!("{what}: {}", keys.join(", "))),
    };
    let changed = list("in effect", &reloaded.changed);
    let waits = list("need a restart", &reloaded.need_restart);
    let lines: Vec<_> = changed.into_iter().chain(waits).collect();
    match &lines[..] {
        [] => "nothing changed".to_owned(),
        lines => lines.join("\n"),
    }
}
