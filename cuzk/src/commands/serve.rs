//! `cuzk serve`: the engine as a daemon.

use std::path::PathBuf;
use std::{io, process};

use clap::Args;
use cuzk_core::Config;
use cuzk_core::config::{Address, ClusterServer, ConfigError};
use cuzk_core::error::ErrorCode;
use cuzk_server::{Hooks, ServeError};

use super::Context;
use super::params::check_cache;
use crate::failure::{Failure, lacks_files};
use crate::signal::Signal;
use crate::threads;

#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    /// Listen for clients here: unix:///PATH or tcp://HOST:PORT. The option may be given
    /// several times, and takes the place of server.listen.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Vec<Address>,
    /// Serve the page, the metrics and the health of the daemon here. The option takes the
    /// place of server.http. A daemon with --listen and without --config serves no HTTP
    /// unless this option is given.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) http: Option<Address>,
    /// Share partitions with the workers of this NATS server: nats://HOST:PORT or
    /// tls://HOST:PORT. The option may be given several times for the servers of one cluster,
    /// and takes the place of cluster.servers.
    #[arg(long, value_name = "URL")]
    pub(crate) cluster: Vec<ClusterServer>,
    /// Leave everything but WinningPoSts to the workers of the cluster. A WindowPoSt is proved
    /// here if no worker takes it.
    #[arg(long)]
    pub(crate) no_local: bool,
    /// End at once when standard input ends. A command that starts a daemon for itself has the
    /// other end of it, so the daemon does not outlive the command, however that ends.
    #[arg(long, hide = true)]
    pub(crate) while_stdin: bool,
}

impl Serve {
    /// Gives the options precedence over the file.
    fn apply(&self, config: &mut Config, has_file: bool) {
        if !self.listen.is_empty() {
            config.server.listen.clone_from(&self.listen);
            if !has_file {
                config.server.http = None;
            }
        }
        if let Some(http) = &self.http {
            config.server.http = Some(http.clone());
        }
        if !self.cluster.is_empty() {
            config.cluster.servers.clone_from(&self.cluster);
        }
        if self.no_local {
            config.cluster.local = false;
        }
    }
}

/// Serves until a signal ends the process. `path` is the file of the configuration, which a
/// reload reads again.
pub(crate) fn run(context: &Context, args: &Serve, path: Option<PathBuf>) -> Result<(), Failure> {
    if let Some(http @ Address::Unix(_)) = &args.http {
        let problem = format!("--http {http}: HTTP is served over TCP only; give HOST:PORT");
        return Err(Failure::input(problem));
    }
    let mut config = context.config.clone();
    args.apply(&mut config, path.is_some());
    if args.no_local && config.cluster.servers.is_empty() {
        let problem = "--no-local: nobody would prove anything; give --cluster, too";
        return Err(Failure::input(problem));
    }
    check_cache(&config.srs.param_cache)?;
    if args.while_stdin {
        end_with_stdin()?;
    }
    let args = args.clone();
    let load = move || -> Result<Config, ConfigError> {
        let mut config = match &path {
            Some(path) => Config::load(path)?,
            None => Config::default(),
        };
        args.apply(&mut config, path.is_some());
        Ok(config)
    };
    let level = context.log_level.clone();
    let hooks = Hooks {
        load: Box::new(load),
        set_log_level: Box::new(move |to| level.set(to)),
    };
    cuzk_server::serve(config, hooks).map_err(|error| failure(&error))
}

/// Ends the process when standard input ends. Running jobs stay in the journal.
fn end_with_stdin() -> Result<(), Failure> {
    threads::start("cuzk-stdin", || {
        // An error is an end, too.
        io::copy(&mut io::stdin().lock(), &mut io::sink()).ok();
        process::exit(i32::from(Signal::Terminate.exit_code()));
    })
}

fn failure(error: &ServeError) -> Failure {
    let code = match error {
        ServeError::Engine(error) => ErrorCode::of(error),
        error if error.is_of_threads() => ErrorCode::Threads,
        error if lacks_files(error) => ErrorCode::OpenFiles,
        error if error.is_input() => ErrorCode::Configuration,
        _ => ErrorCode::Start,
    };
    Failure::new(code, error.to_string())
}
