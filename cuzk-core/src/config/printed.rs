//! The way from the configuration back to a file.
//!
//! Not its text: that is serde's. The invariant: every key is written, and reading the file
//! gives the same configuration.

use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;

use super::address::Address;
use super::cluster::Cluster;
use super::file::{self, DevicesText, Field, FileConfig, SizeText};
use super::resolved::{Config, Devices, Pipeline};
use super::server::Server;
use super::size::exact_size;

/// A size, in its shortest exact spelling.
fn size_text(bytes: u64) -> SizeText {
    SizeText::Text(exact_size(bytes))
}

fn limit_text(bytes: Option<u64>) -> SizeText {
    bytes.map_or_else(|| SizeText::Text("auto".to_owned()), size_text)
}

/// A path, or an empty text for none.
fn path(path: &Option<PathBuf>) -> Field<String> {
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    written(path.as_ref().map(text).unwrap_or_default())
}

fn texts<T: ToString>(values: &[T]) -> Field<Vec<String>> {
    written(values.iter().map(ToString::to_string).collect())
}

/// The section of a daemon.
fn server(server: &Server) -> file::ServerSection {
    // `HOST:PORT` is how the key is written.
    let bare = |address: &Address| address.to_string().replacen("tcp://", "", 1);
    file::ServerSection {
        listen: texts(&server.listen),
        http: written(server.http.as_ref().map(bare).unwrap_or_default()),
        socket_mode: written(format!("{:04o}", server.socket_mode)),
        socket_group: written(server.socket_group.clone().unwrap_or_default()),
        tls_certificate: path(&server.tls_certificate),
        tls_key: path(&server.tls_key),
        client_ca: path(&server.client_ca),
        tokens: path(&server.tokens),
        plaintext_from: texts(&server.plaintext_from),
        request_memory: written(size_text(server.request_memory_bytes)),
        drain_s: seconds(server.drain),
        state_dir: path(&server.state_dir),
        serve_params: written(server.serve_params),
    }
}

/// The section of a cluster.
fn cluster(cluster: &Cluster) -> file::ClusterSection {
    file::ClusterSection {
        servers: texts(&cluster.servers),
        name: written(cluster.name.clone()),
        local: written(cluster.local),
        credentials: path(&cluster.credentials),
        server_ca: path(&cluster.server_ca),
        client_certificate: path(&cluster.client_certificate),
        client_key: path(&cluster.client_key),
        work_bytes_max: written(size_text(cluster.work_bytes_max)),
        object_bytes_max: written(size_text(cluster.object_bytes_max)),
        age_max_s: seconds(cluster.age_max),
        replicas: count(cluster.replicas),
    }
}

/// The section of the pipeline.
fn pipeline(pipeline: &Pipeline) -> file::PipelineSection {
    file::PipelineSection {
        synthesis_lookahead: count(pipeline.synthesis_lookahead),
        finish_workers: count(pipeline.finish_workers),
        max_batch: count(pipeline.max_batch),
        throttle: written(pipeline.throttle),
        throttle_manner: written(pipeline.throttle_manner.as_str().to_owned()),
    }
}

/// A value that stands in no file.
fn written<T>(value: T) -> Field<T> {
    Some(Spanned::new(0..0, value))
}

fn seconds(value: Duration) -> Field<i64> {
    written(i64::try_from(value.as_secs()).unwrap_or(i64::MAX))
}

fn count(value: usize) -> Field<i64> {
    written(i64::try_from(value).unwrap_or(i64::MAX))
}

impl From<&Config> for FileConfig {
    /// The file that resolves to this configuration, every key written.
    fn from(config: &Config) -> Self {
        let devices = match &config.gpus.devices {
            Devices::Cpu => DevicesText::Keyword("cpu".to_owned()),
            Devices::Auto => DevicesText::Keyword("auto".to_owned()),
            Devices::Ordinals(list) => {
                DevicesText::Ordinals(list.iter().map(|&ordinal| ordinal.into()).collect())
            }
        };
        Self {
            srs: file::SrsSection {
                param_cache: written(config.srs.param_cache.to_string_lossy().into_owned()),
                multiples: texts(&config.srs.multiples),
                check_digests: written(config.srs.check_digests),
                sources: texts(&config.srs.sources),
            },
            synthesis: file::SynthesisSection {
                threads: count(config.synthesis.threads),
                partition_workers: count(config.synthesis.partition_workers),
                circuit: written(config.synthesis.circuit.as_str().to_owned()),
            },
            gpus: file::GpusSection {
                devices: written(devices),
                gpu_threads: count(config.gpus.gpu_threads),
                gpu_workers_per_device: count(config.gpus.gpu_workers_per_device),
                faults_max: written(config.gpus.faults_max.into()),
                stall_s: seconds(config.gpus.stall),
                rest_s: seconds(config.gpus.rest),
                b_g2: written(config.gpus.b_g2.as_str().to_owned()),
                memory_limit: written(limit_text(config.gpus.memory_limit_bytes)),
            },
            cpu: file::CpuSection {
                isa: written(config.cpu.isa.name().to_owned()),
            },
            memory: file::MemorySection {
                total_budget: written(size_text(config.memory.total_budget_bytes)),
                safety_margin: written(size_text(config.memory.safety_margin_bytes)),
                critical_reserve: written(size_text(config.memory.critical_reserve_bytes)),
                dealloc: written(config.memory.dealloc.as_str().to_owned()),
            },
            pipeline: pipeline(&config.pipeline),
            jobs: file::JobsSection {
                queued_partitions: count(config.jobs.queued_partitions),
                results_kept: count(config.jobs.results_kept),
                results_kept_s: seconds(config.jobs.results_kept_for),
                normal_patience_s: seconds(config.jobs.patience.normal),
                low_patience_s: seconds(config.jobs.patience.low),
                journal: path(&config.jobs.journal),
            },
            server: server(&config.server),
            cluster: cluster(&config.cluster),
            logging: file::LoggingSection {
                level: written(config.logging.level.as_str().to_owned()),
                format: written(config.logging.format.as_str().to_owned()),
            },
        }
    }
}
