//! [`AdminServer`]: what is behind an admin socket in a test, which records requests.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

/// Requests, as method and target, with their bodies.
type Requests = Mutex<Vec<(String, Vec<u8>)>>;

/// See the module.
pub(crate) struct AdminServer {
    directory: PathBuf,
    requests: Arc<Requests>,
}

/// The status and the body of the response to a request, which is its method and target.
pub(crate) type Respond = dyn Fn(&str) -> (u16, Vec<u8>) + Send + Sync;

/// A directory of a test of its own.
pub(crate) fn directory(name: &str) -> PathBuf {
    let directory =
        std::env::temp_dir().join(format!("outboard-cli-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

impl AdminServer {
    pub(crate) fn start(
        name: &str,
        respond: impl Fn(&str) -> (u16, Vec<u8>) + Send + Sync + 'static,
    ) -> Self {
        let directory = directory(name);
        let listener = UnixListener::bind(directory.join("sock")).unwrap();
        let requests = Arc::<Requests>::default();
        let (respond, received): (Arc<Respond>, _) = (Arc::new(respond), requests.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (respond, received) = (respond.clone(), received.clone());
                thread::spawn(move || serve(stream, &*respond, &received));
            }
        });
        Self { directory, requests }
    }

    /// Responds to every request with this JSON.
    pub(crate) fn replying(name: &str, status: u16, body: &'static str) -> Self {
        Self::start(name, move |_| (status, body.as_bytes().to_vec()))
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("sock")
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The requests since the last call, and their bodies.
    pub(crate) fn take(&self) -> Vec<(String, Vec<u8>)> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.take().into_iter().map(|(line, _)| line).collect()
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn serve(mut stream: UnixStream, respond: &Respond, received: &Requests) {
    let mut input = Vec::new();
    let mut buffer = [0; 64 << 10];
    loop {
        let end = input.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let request = end.and_then(|end| {
            let head = String::from_utf8(input[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let whole = end + 4 + length.map_or(0, |length| length.parse::<usize>().unwrap());
            let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
            (input.len() >= whole).then(|| (line, input[end + 4..whole].to_vec(), whole))
        });
        let Some((line, body, whole)) = request else {
            match stream.read(&mut buffer) {
                Ok(count) if count > 0 => input.extend(&buffer[..count]),
                _ => return,
            }
            continue;
        };
        input.drain(..whole);
        let (status, reply) = respond(&line);
        received.lock().unwrap().push((line, body));
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", reply.len());
        if stream.write_all(&[head.as_bytes(), &reply].concat()).is_err() {
            return;
        }
    }
}
