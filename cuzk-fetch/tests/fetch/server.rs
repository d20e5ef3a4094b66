//! A small HTTP server that cuts, lies and waits as it is told, and counts what it sent.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use cuzk_bounded::{BoundedJoin, bounded};

/// The bytes of one write.
const CHUNK_BYTES: usize = 8 << 10;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) is_head: bool,
    /// The range that was asked for, as far as the file has it.
    pub(crate) range: Option<Range<usize>>,
    /// The number of GET requests before this one.
    pub(crate) number: usize,
}

/// How a request is answered. The default is right.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    /// Another status, without a body.
    pub(crate) status: Option<u16>,
    /// Lines that are added to the head.
    pub(crate) lines: Vec<String>,
    /// Sends the whole file.
    pub(crate) is_whole: bool,
    /// The connection is closed after so many bytes.
    pub(crate) cut_after: Option<usize>,
    /// Nothing is sent after so many bytes until the server is released.
    pub(crate) stall_after: Option<usize>,
    /// Says that the file has another length.
    pub(crate) length: Option<usize>,
    /// Bytes that are sent wrong.
    pub(crate) is_wrong: Option<fn(usize) -> bool>,
    /// Says another `Content-Range`; an empty text leaves it out.
    pub(crate) content_range: Option<String>,
}

type Behaviour = Box<dyn Fn(&Asked) -> Manner + Send + Sync>;

struct Inner {
    files: BTreeMap<String, Vec<u8>>,
    behaviour: Behaviour,
    /// How often each byte of each file was sent.
    sent: Mutex<BTreeMap<String, Vec<u32>>>,
    gets: AtomicUsize,
    is_released: Mutex<bool>,
    released: Condvar,
    is_ended: AtomicBool,
}

pub(crate) struct Server {
    inner: Arc<Inner>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves files under their paths.
    pub(crate) fn start(
        files: &[(&str, &[u8])],
        behaviour: impl Fn(&Asked) -> Manner + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let files = files
            .iter()
            .map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()));
        let files: BTreeMap<_, _> = files.collect();
        let unsent = |bytes: &Vec<u8>| vec![0; bytes.len()];
        let sent = files
            .iter()
            .map(|(path, bytes)| (path.clone(), unsent(bytes)));
        let inner = Arc::new(Inner {
            sent: Mutex::new(sent.collect()),
            files,
            behaviour: Box::new(behaviour),
            gets: AtomicUsize::new(0),
            is_released: Mutex::new(false),
            released: Condvar::new(),
            is_ended: AtomicBool::new(false),
        });
        let serving = Arc::clone(&inner);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.is_ended.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), inner) = (stream, Arc::clone(&serving)) else {
                    continue;
                };
                std::thread::spawn(move || serve(&inner, &stream));
            }
        });
        Self {
            inner,
            address,
            thread: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server as a source.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns how often each byte of a file was sent.
    pub(crate) fn sent(&self, path: &str) -> Vec<u32> {
        self.inner.sent.lock().unwrap()[path].clone()
    }

    /// Returns the number of bytes of a file that were sent.
    pub(crate) fn sent_bytes(&self, path: &str) -> usize {
        self.sent(path).iter().map(|times| *times as usize).sum()
    }

    /// Lets all answers go on that are stalled or will be.
    pub(crate) fn release(&self) {
        *self.inner.is_released.lock().unwrap() = true;
        self.inner.released.notify_all();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.inner.is_ended.store(true, Ordering::SeqCst);
        self.release();
        // It wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join_bounded();
        }
    }
}

fn serve(inner: &Inner, stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read_request(inner, &mut reader) {
        let manner = (inner.behaviour)(&asked);
        if answer(inner, stream, &asked, &manner).is_none() {
            return;
        }
    }
}

fn read_request(inner: &Inner, reader: &mut BufReader<&TcpStream>) -> Option<Asked> {
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?, words.next()?);
    let path = path.trim_start_matches('/').to_owned();
    let length = inner.files.get(&path).map_or(0, Vec::len);
    let mut range = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(asked) = line.strip_prefix("range: bytes=") {
            let (start, last) = asked.split_once('-')?;
            let end = last.parse::<usize>().ok()?.saturating_add(1);
            range = Some(start.parse().ok()?..end.min(length));
        }
    }
    let is_head = method == "HEAD";
    let number = inner
        .gets
        .fetch_add(usize::from(!is_head), Ordering::SeqCst);
    Some(Asked {
        path,
        is_head,
        range,
        number,
    })
}

/// Answers a request. Returns nothing if the connection is to be closed.
fn answer(inner: &Inner, stream: &TcpStream, asked: &Asked, manner: &Manner) -> Option<()> {
    let file = inner.files.get(&asked.path);
    let status = manner.status.or(file.is_none().then_some(404));
    if let Some(status) = status {
        let lines = manner.lines.concat();
        return write(
            stream,
            &format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n{lines}\r\n"),
        );
    }
    let file = file?;
    let length = manner.length.unwrap_or(file.len());
    let range = asked.range.clone().filter(|_| !manner.is_whole);
    let mut head = match &range {
        Some(range) if !asked.is_head => {
            let last = range.end.saturating_sub(1);
            let told = format!("bytes {}-{last}/{length}", range.start);
            let told = manner.content_range.clone().unwrap_or(told);
            let told = if told.is_empty() {
                told
            } else {
                format!("Content-Range: {told}\r\n")
            };
            format!(
                "HTTP/1.1 206 X\r\n{told}Content-Length: {}\r\n",
                range.len()
            )
        }
        _ => format!("HTTP/1.1 200 X\r\nContent-Length: {length}\r\n"),
    };
    head += &manner.lines.concat();
    write(stream, &(head + "\r\n"))?;
    if asked.is_head {
        return Some(());
    }
    body(inner, stream, asked, manner, range.unwrap_or(0..file.len()))
}

fn body(
    inner: &Inner,
    mut stream: &TcpStream,
    asked: &Asked,
    manner: &Manner,
    range: Range<usize>,
) -> Option<()> {
    let file = &inner.files[&asked.path];
    let mut at = range.start;
    while at < range.end {
        let done = at - range.start;
        if manner.cut_after.is_some_and(|after| done >= after) {
            return None;
        }
        if manner.stall_after.is_some_and(|after| done >= after) {
            let released = inner.is_released.lock().unwrap();
            let waited = bounded(|| {
                let is_held = |released: &mut bool| !*released;
                inner.released.wait_while(released, is_held)
            });
            drop(waited.unwrap());
        }
        let limit =
            |after: Option<usize>| after.filter(|after| *after > done).unwrap_or(usize::MAX);
        let left = limit(manner.cut_after)
            .min(limit(manner.stall_after))
            .saturating_sub(done);
        let end = range.end.min(at + CHUNK_BYTES.min(left));
        let mut bytes = file[at..end].to_vec();
        if let Some(is_wrong) = manner.is_wrong {
            let wrong = (at..end).filter(|byte| is_wrong(*byte));
            wrong.for_each(|byte| bytes[byte - at] ^= 1);
        }
        stream.write_all(&bytes).ok()?;
        let mut sent = inner.sent.lock().unwrap();
        if let Some(sent) = sent.get_mut(&asked.path) {
            sent[at..end].iter_mut().for_each(|times| *times += 1);
        }
        at = end;
    }
    Some(())
}

fn write(mut stream: &TcpStream, text: &str) -> Option<()> {
    stream.write_all(text.as_bytes()).ok()
}
