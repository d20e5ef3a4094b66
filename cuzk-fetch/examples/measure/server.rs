//! A server of files on this machine that cuts connections, sends wrong bytes or is slow.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The bytes of one write.
const CHUNK_BYTES: usize = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// So many connections are cut, each within the range that was asked for.
    Cuts(usize),
    /// A byte of each chunk is wrong.
    Wrong,
    /// It sends at most so many bytes in a second over one connection.
    Slow(u64),
}

struct Inner {
    folder: PathBuf,
    manner: Manner,
    /// The ranges that were sent: a file, the start and the end.
    sent: Mutex<Vec<(String, u64, u64)>>,
    cuts: AtomicUsize,
    is_ended: AtomicBool,
}

pub(crate) struct Server {
    inner: Arc<Inner>,
    address: SocketAddr,
}

impl Server {
    pub(crate) fn start(folder: &Path, manner: Manner) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let inner = Arc::new(Inner {
            folder: folder.to_owned(),
            manner,
            sent: Mutex::default(),
            cuts: AtomicUsize::new(0),
            is_ended: AtomicBool::new(false),
        });
        let serving = Arc::clone(&inner);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.is_ended.load(Ordering::SeqCst) {
                    return;
                }
                let inner = Arc::clone(&serving);
                if let Ok(stream) = stream {
                    // An error is the end of a connection.
                    thread::spawn(move || inner.serve(&stream).ok());
                }
            }
        });
        Ok(Self { inner, address })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn is_wrong(&self) -> bool {
        self.inner.manner == Manner::Wrong
    }

    pub(crate) fn cuts(&self) -> usize {
        self.inner.cuts.load(Ordering::SeqCst)
    }

    pub(crate) fn sent(&self) -> Vec<(String, u64, u64)> {
        let sent = self.inner.sent.lock();
        sent.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.inner.is_ended.store(true, Ordering::SeqCst);
        // It wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl Inner {
    fn serve(&self, mut stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream);
        loop {
            let mut first = String::new();
            if reader.read_line(&mut first)? == 0 {
                return Ok(());
            }
            let mut words = first.split_whitespace();
            let (method, path) = (words.next(), words.next().unwrap_or_default());
            let name = path.trim_start_matches('/').to_owned();
            let file = File::open(self.folder.join(&name))?;
            let length = file.metadata()?.len();
            let range = range(&mut reader, length)?;
            let (start, end) = range.unwrap_or((0, length));
            let told = match range {
                Some(_) if method == Some("GET") => {
                    format!("206 X\r\nContent-Range: bytes {start}-{}/{length}", end - 1)
                }
                _ => "200 X".to_owned(),
            };
            let head = format!("HTTP/1.1 {told}\r\nContent-Length: {}\r\n\r\n", end - start);
            stream.write_all(head.as_bytes())?;
            if method == Some("GET") {
                self.body(stream, &name, &file, (start, end))?;
            }
        }
    }

    /// Sends a range. An error ends the connection.
    fn body(
        &self,
        mut stream: &TcpStream,
        name: &str,
        file: &File,
        (start, end): (u64, u64),
    ) -> io::Result<()> {
        let stop = self.cut_at(start, end);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut at = start;
        let mut result = Ok(());
        while at < stop && result.is_ok() {
            let length =
                usize::try_from(stop - at).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
            file.read_exact_at(&mut chunk[..length], at)?;
            match self.manner {
                Manner::Wrong => chunk[length / 2] ^= 1,
                Manner::Slow(rate) => {
                    thread::sleep(Duration::from_secs_f64(length as f64 / rate as f64));
                }
                Manner::Cuts(_) => {}
            }
            result = stream.write_all(&chunk[..length]);
            at += if result.is_ok() { length as u64 } else { 0 };
        }
        let sent = self.sent.lock();
        let mut sent = sent.unwrap_or_else(PoisonError::into_inner);
        sent.push((name.to_owned(), start, at));
        result?;
        match stop < end {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    /// Returns the place where a range is cut, or its end.
    fn cut_at(&self, start: u64, end: u64) -> u64 {
        let Manner::Cuts(cuts) = self.manner else {
            return end;
        };
        let count = |done: usize| (done < cuts).then_some(done + 1);
        let is_long = end - start > 1 << 20;
        if !is_long
            || self
                .cuts
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, count)
                .is_err()
        {
            return end;
        }
        start + (end - start) / 3
    }
}

/// Reads the rest of a request's head, and returns the range that it asks for.
fn range(reader: &mut BufReader<&TcpStream>, length: u64) -> io::Result<Option<(u64, u64)>> {
    let mut range = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            return Ok(range);
        }
        let Some(asked) = line.strip_prefix("range: bytes=") else {
            continue;
        };
        let (start, last) = asked.split_once('-').unwrap_or((asked, ""));
        let end = last
            .parse()
            .map_or(length, |last: u64| length.min(last + 1));
        range = start.parse().ok().map(|start: u64| (start.min(end), end));
    }
}
