//! `cuzk proxy --listen unix:///PATH --to tcp://HOST:PORT`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cuzk_core::config::Address;
use cuzk_core::error::ErrorCode;
use cuzk_server::proxy::{Proxy, ProxyError, ProxyOptions};

use super::Context;
use crate::failure::{Failure, lacks_files};
use crate::interrupt::Interrupt;
use crate::threads::no_runtime;

/// The time between two looks for a signal.
const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    /// Listen for clients on this unix socket. `server.socket_mode` and
    /// `server.socket_group` set its permissions.
    #[arg(long, value_name = "unix:///PATH")]
    pub(crate) listen: Address,
    /// Connect to the daemon at this address.
    #[arg(long, value_name = "tcp://HOST:PORT")]
    pub(crate) to: Address,
    /// Show the daemon this certificate, a PEM file.
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: PathBuf,
    /// The key of the certificate, a PEM file.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The authority that signed the daemon's certificate, a PEM file.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: PathBuf,
    /// The name in the daemon's certificate. The default is the host of `--to`.
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
}

pub(crate) fn run(context: &Context, args: ProxyArgs) -> Result<(), Failure> {
    let options = options(context, args)?;
    let interrupt = Interrupt::watch()?;
    let runtime = cuzk_cluster::runtime::start("cuzk-proxy", 2);
    let runtime = runtime.map_err(|error| no_runtime(&error))?;
    runtime.block_on(async {
        let proxy = Proxy::bind(options).map_err(|error| match error {
            error if lacks_files(&error) => Failure::new(ErrorCode::OpenFiles, error.to_string()),
            ProxyError::Runtime(_) => Failure::failed(error.to_string()),
            _ => Failure::input(error.to_string()),
        })?;
        let stopped = async {
            loop {
                if let Some(signal) = interrupt.signal() {
                    return signal;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::select! {
            () = proxy.run() => Err(Failure::failed("the proxy ended by itself; start it again")),
            signal = stopped => Err(Failure::stopped(signal, "its connections are closed")),
        }
    })
}

fn options(context: &Context, args: ProxyArgs) -> Result<ProxyOptions, Failure> {
    let Address::Unix(listen) = args.listen else {
        return Err(Failure::input("--listen: expected unix:///PATH"));
    };
    let Address::Tcp { host, port } = args.to else {
        return Err(Failure::input("--to: expected tcp://HOST:PORT"));
    };
    let server = &context.config.server;
    Ok(ProxyOptions {
        listen,
        mode: server.socket_mode,
        group: server.socket_group.clone(),
        host,
        port,
        certificate: args.certificate,
        key: args.key,
        ca: args.ca,
        server_name: args.server_name,
    })
}
